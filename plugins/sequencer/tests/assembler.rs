//! The assembler from outside: words, data, and messages.

use gateweave_sequencer::{Assembler, Program};

fn assemble(text: &str) -> Program {
    Assembler::new().source("t.seq", text).assemble().unwrap_or_else(|e| panic!("{e}"))
}

fn fault(text: &str) -> String {
    Assembler::new().source("t.seq", text).assemble().expect_err("it is wrong").to_string()
}

#[test]
fn operands_are_encoded_as_the_hdl_reads_them() {
    let text = "
        .var first
        .var here, 2
        ld   #511
        ld   here+1
        st   x+3
        cmp  y-1
        lex  x
        lea  here
        ror  17
        outl 3
        tay
        ret
    ";
    let expected = [
        3 << 9 | 511,
        2,
        13 << 11 | 1 << 9 | 3,
        7 << 11 | 2 << 9 | 0x1ff,
        10 << 11 | 1 << 9,
        8 << 11 | 1,
        12 << 11 | 2,
        12 << 11 | 2,
        12 << 11 | 1,
        22 << 11 | 3,
        19 << 11,
        23 << 11,
    ];
    assert_eq!(assemble(text).code, expected);
}

#[test]
fn large_numbers_share_a_word_at_the_end_of_the_near_data() {
    let program = assemble(".word table, 7, -1\n ld #0x80010000\n add #512\n ld #-2147418112\n");
    assert_eq!(program.code, [511, 4 << 11 | 510, 511]);
    assert_eq!((program.data[511], program.data[510]), (0x8001_0000, 512));
    assert_eq!(program.data[..2], [7, u32::MAX]);
    assert_eq!(program.data_bits(), 9);
}

#[test]
fn far_data_lie_behind_the_near_ones() {
    let program = assemble(".far records, 600\n ldx #records+1\n");
    assert_eq!((program.data.len(), program.data_words), (512, 1112));
    assert_eq!(program.data_bits(), 11);
    assert_eq!(program.data[511], 513);
}

#[test]
fn local_labels_belong_to_the_label_before() {
    let program = assemble("a:\n.x: jmp .x\nb:\n jmp .x\n.x: jmp a\n");
    assert_eq!(program.code, [24 << 11, 24 << 11 | 2, 24 << 11]);
    assert_eq!(program.symbol("b.x"), Some(2));
}

#[test]
fn macros_take_arguments_and_count_their_uses() {
    let program = assemble(
        ".macro put port, value\n.again\\@:\n tout \\port\n bnc .again\\@\n ld \\value\n out \\port\n.endm\nmain:\n put 1, #5\n put 2, #6\n",
    );
    assert_eq!(program.code.len(), 8);
    assert_eq!(program.code[5], 29 << 11 | 4);
}

#[test]
fn conditions_choose() {
    let text = ".equ N, 4\n.if N > 4\n ld #1\n.else\n.if N == 4\n ld #2\n.endif\n.endif\n.if 0\n nonsense\n.if unknown\n.endif\n.endif\n";
    assert_eq!(assemble(text).code, [3 << 9 | 2]);
}

#[test]
fn records_count_their_fields() {
    let program = assemble(".record\n.field STATE\n.field PEER, 2\n.field SIZE, 0\n ld x+SIZE\n");
    assert_eq!(program.code, [1 << 9 | 3]);
}

#[test]
fn messages_name_place_and_neighbour() {
    let shown = fault(" .var connection\n    ld   conection ; typo\n");
    assert_eq!(
        shown,
        "t.seq:2:10: unknown name `conection`\n    2 |     ld   conection ; typo\n      |          ^\n      = help: did you mean `connection`?"
    );
    assert!(fault("  lod #1").contains("did you mean `ld`?"), "{}", fault("  lod #1"));
    assert!(fault(".vra a").contains("did you mean `.var`?"));
    assert!(fault(".macro m a\n ld \\a\n.endm\n\n m nothing\n").contains("in the macro used at t.seq:5"));
}

#[test]
fn what_does_not_fit_is_refused() {
    for (text, message) in [
        (" ld x+256", "offset 256"),
        (" ld 512", "512 is no direct address"),
        (" st #1", "a number is no place"),
        (" ld #0x1_0000_0000", "more than 32 bits"),
        (" ror 32", "cannot rotate by 32"),
        (" out 32", "32 is no port"),
        (" ret 1", "no operand is expected"),
        (" ld", "an operand is missing"),
        (".var big, 513", "more than 512 words"),
        ("a:\na:\n", "`a` exists already"),
        (".macro m\n", "has no `.endm`"),
        (".if 1\n", "has no `.endif`"),
        (".macro m\n m\n.endm\n m\n", "16 deep"),
        (".equ ld, 1", "means something else"),
        ("x: ret", "means something else"),
    ] {
        assert!(fault(text).contains(message), "{text:?}: {}", fault(text));
    }
    let long = " ret\n".repeat(2049);
    assert!(fault(&long).contains("more than 2048 instructions"));
}

#[test]
fn all_faults_are_shown_in_the_order_of_the_passes() {
    assert_eq!(fault(" foo\n bar\n ld nothing\n").matches("unknown").count(), 3);
}
