/// CRC-32 of IEEE 802.3: polynomial 0x04C11DB7, bits least significant first, start all ones,
/// result complemented. States here are reflected: bit 31 is the coefficient of x^0.
package gw_crc32_pkg;
    /// The polynomial, reflected.
    localparam bit [32-1:0] POLY = 32'hEDB88320;
    /// State before the first byte.
    localparam bit [32-1:0] INIT = 32'hFFFFFFFF;
    /// State after data followed by its own complemented CRC, lowest byte first.
    localparam bit [32-1:0] RESIDUE = 32'hDEBB20E3;

    /// One bit of time without data.
    function automatic bit [32-1:0] shift(
        input var bit [32-1:0] s
    ) ;
        return ((s[0]) ? ( (s >> 1) ^ POLY ) : ( s >> 1 ));
    endfunction

    /// The inverse of `shift`.
    function automatic bit [32-1:0] unshift(
        input var bit [32-1:0] s
    ) ;
        return {s[30:0] ^ (((s[31]) ? ( POLY[30:0] ) : ( 0 ))), s[31]};
    endfunction

    /// The matrix times itself.
    function automatic bit [1024-1:0] square(
        input var bit [1024-1:0] m
    ) ;
        bit [1024-1:0] r;
        bit [32-1:0]   s;
        bit [32-1:0]   c;
        r = 0;
        for (int j = 0; j < 32; j++) begin
            c = m[j * 32+:32];
            s = 0;
            for (int i = 0; i < 32; i++) begin
                if (c[i]) begin
                    s = s ^ m[i * 32+:32];
                end
            end
            r[j * 32+:32] = s;
        end
        return r;
    endfunction

    /// The matrix that takes back 2^`k` bytes of zeros; column j in bits 32j+31 to 32j.
    function automatic bit [1024-1:0] unshift_bytes(
        input var int unsigned k
    ) ;
        bit [1024-1:0] m;
        bit [32-1:0]   s;
        m = 0;
        for (int j = 0; j < 32; j++) begin
            s    = 0;
            s[j] = 1;
            for (int _k = 0; _k < 8; _k++) begin
                s = unshift(s);
            end
            m[j * 32+:32] = s;
        end
        for (int _n = 0; _n < k; _n++) begin
            m = square(m);
        end
        return m;
    endfunction

    /// Row `i` of a matrix: which input bits add up to output bit `i`.
    function automatic bit [32-1:0] row(
        input var bit [1024-1:0] m,
        input var bit [5-1:0]    i
    ) ;
        bit [32-1:0] r;
        r = 0;
        for (int j = 0; j < 32; j++) begin
            r[j] = m[{5'(j), i}];
        end
        return r;
    endfunction
endpackage

/// The part of the next state that comes from `data` alone: combinational, `W` bits, the lowest
/// bit first on the wire, `AFTER` more bits to come before the state is read.
module gw_crc32_data #(
    /// Width in bits.
    parameter int unsigned W = 8,
    /// Bits of the same beat that come later.
    parameter int unsigned AFTER = 0
) (
    input  var logic [W-1:0]  data,
    output var logic [32-1:0] part
);
    function automatic bit [W-1:0] mask(
        input var bit [5-1:0] i
    ) ;
        bit [W-1:0]  m;
        bit [32-1:0] s;
        s = gw_crc32_pkg::POLY;
        m = 0;
        for (int k = 0; k < W + AFTER; k++) begin
            if (k + 1 > AFTER) begin
                m[W + AFTER - 1 - k] = s[i];
            end
            s = gw_crc32_pkg::shift(s);
        end
        return m;
    endfunction

    for (genvar i = 0; i < 32; i++) begin :g_bit
        localparam bit [W-1:0] MASK    = mask(5'(i));
        always_comb part[i] = ^(data & MASK);
    end
endmodule

/// State after one whole beat: combinational. For 8 bits about one level of LUTs.
module gw_crc32_next #(
    /// Width in bits: 8 or more.
    parameter int unsigned W = 8
) (
    input  var logic [32-1:0] state,
    input  var logic [W-1:0]  data ,
    output var logic [32-1:0] next 
);
    logic [W-1:0]  mixed;
    logic [32-1:0] part ;

    if (W < 32) begin :g_short
        always_comb mixed = data ^ state[W - 1:0];
        always_comb next  = part ^ (state >> W);
    end else if (W == 32) begin :g_word
        always_comb mixed = data ^ state;
        always_comb next  = part;
    end else begin :g_short
        always_comb mixed = {data[W - 1:32], data[31:0] ^ state};
        always_comb next  = part;
    end

    gw_crc32_data #(
        .W (W)
    ) u_data (
        .data (mixed),
        .part (part )
    );
endmodule

/// Takes back 2^`STAGE` bytes of zeros from a state where that bit of `i_count` is set.
module gw_crc32_back #(
    /// Which bit.
    parameter int unsigned STAGE = 0,
    /// 0: passes everything through.
    parameter bit ON = 1'b1,
    /// A register behind it.
    parameter bit PIPE = 1'b0
) (
    input  var logic          clk    ,
    input  var logic          rst    ,
    input  var logic [32-1:0] i_state,
    input  var logic [7-1:0]  i_count,
    input  var logic          i_valid,
    output var logic [32-1:0] o_state,
    output var logic [7-1:0]  o_count,
    output var logic          o_valid
);
    if (ON) begin :g_on
        localparam bit   [1024-1:0] MATRIX = gw_crc32_pkg::unshift_bytes(STAGE);
        logic [32-1:0]   back  ;

        for (genvar i = 0; i < 32; i++) begin :g_bit
            localparam bit [32-1:0] ROW     = gw_crc32_pkg::row(MATRIX, 5'(i));
            always_comb back[i] = ((i_count[STAGE]) ? ( ^(i_state & ROW) ) : ( i_state[i] ));
        end

        if (PIPE) begin :g_pipe
            always_ff @ (posedge clk) begin
                o_state <= back;
                o_count <= i_count;
            end
            always_ff @ (posedge clk) begin
                if (rst) begin
                    o_valid <= 0;
                end else begin
                    o_valid <= i_valid;
                end
            end
        end else begin :g_pipe
            always_comb o_state = back;
            always_comb o_count = i_count;
            always_comb o_valid = i_valid;
        end
    end else begin :g_pipe
        always_comb o_state = i_state;
        always_comb o_count = i_count;
        always_comb o_valid = i_valid;
    end
endmodule

/// CRC-32 of packets, `W` bits per cycle, any number of bytes in the last beat. `o_crc` is the
/// complemented CRC, its lowest byte first on the wire; valid `LATENCY` cycles after the last beat.
///
/// A packet without bytes gives 0. With `PIPE` no path has more than about 20 inputs, for 300 MHz
/// and more; without, the CRC is read one cycle after the last beat.
module gw_crc32 #(
    /// Width in bits: 8 to 512.
    parameter int unsigned W = 32,
    /// Pipeline the data and the tail.
    parameter bit PIPE = W > 64,
    /// Cycles from the last beat to `o_valid`.
    parameter int unsigned LATENCY = ((PIPE) ? ( 5 + $clog2(W / 8) ) : ( 1 ))
) (
    input  var logic               clk    ,
    input  var logic               rst    ,
    input  var logic [W-1:0]       i_data ,
    input  var logic [(W / 8)-1:0] i_keep ,
    input  var logic               i_last ,
    input  var logic               i_valid,
    output var logic [32-1:0]      o_crc  ,
    output var logic               o_valid
);
    localparam int unsigned B = W / 8;
    localparam int unsigned K = $clog2(B);

    // Bytes that are not there count as zeros; their number is taken back from the state at the end.
    logic [W-1:0]       clean  ;
    logic [(K + 1)-1:0] missing;
    for (genvar i = 0; i < B; i++) begin :g_clean
        always_comb clean[i * 8+:8] = i_data[i * 8+:8] & {8{i_keep[i]}};
    end
    always_comb begin
        missing = 0;
        for (int i = 0; i < B; i++) begin
            if (~i_keep[i]) begin
                missing = missing + 1;
            end
        end
    end

    logic [32-1:0]      state  ;
    logic               ending ;
    logic [(K + 1)-1:0] removed;

    if (PIPE) begin :g_pipe
        localparam int unsigned P = ((W > 64) ? ( W / 64 ) : ( 1 )); // chunks of 64 bits
        localparam int unsigned H = W / P;

        logic [W-1:0]       s0_data       ;
        logic [(K + 1)-1:0] s0_missing    ;
        logic               s0_last       ;
        logic               s0_valid      ;
        logic [32-1:0]      s1_part    [P];
        logic [32-1:0]      s1_next    [P];
        logic [(K + 1)-1:0] s1_missing    ;
        logic               s1_last       ;
        logic               s1_valid      ;
        logic [32-1:0]      s2_sum        ;
        logic [32-1:0]      s2_part       ;
        logic [(K + 1)-1:0] s2_missing    ;
        logic               s2_last       ;
        logic               s2_valid      ;
        logic               first         ;
        logic [32-1:0]      back          ;
        logic [32-1:0]      back_init     ;

        always_ff @ (posedge clk) begin
            s0_data    <= clean;
            s0_missing <= missing;
            s0_last    <= i_last;
            s1_missing <= s0_missing;
            s1_last    <= s0_last;
            s2_missing <= s1_missing;
            s2_last    <= s1_last;
            s2_part    <= s2_sum;
            removed    <= s2_missing;
        end

        always_ff @ (posedge clk) begin
            if (rst) begin
                s0_valid <= 0;
                s1_valid <= 0;
                s2_valid <= 0;
                ending   <= 0;
                first    <= 1;
            end else begin
                s0_valid <= i_valid;
                s1_valid <= s0_valid;
                s2_valid <= s1_valid;
                ending   <= s2_valid & s2_last;
                if (s2_valid) begin
                    first <= s2_last;
                end
            end
        end

        for (genvar p = 0; p < P; p++) begin :g_chunk
            gw_crc32_data #(
                .W     (H              ),
                .AFTER (W - (p + 1) * H)
            ) u_data (
                .data (s0_data[p * H+:H]),
                .part (s1_next[p]       )
            );
            always_ff @ (posedge clk) begin
                s1_part[p] <= s1_next[p];
            end
        end

        always_comb begin
            s2_sum = 0;
            for (int p = 0; p < P; p++) begin
                s2_sum = s2_sum ^ s1_part[p];
            end
        end

        if (W >= 32) begin :g_back
            gw_crc32_data #(
                .W     (32    ),
                .AFTER (W - 32)
            ) u_back (
                .data (state),
                .part (back )
            );
            gw_crc32_data #(
                .W     (32    ),
                .AFTER (W - 32)
            ) u_init (
                .data (gw_crc32_pkg::INIT),
                .part (back_init         )
            );
        end else begin :g_back
            gw_crc32_next #(
                .W (W)
            ) u_back (
                .state (state),
                .data  (0    ),
                .next  (back )
            );
            gw_crc32_next #(
                .W (W)
            ) u_init (
                .state (gw_crc32_pkg::INIT),
                .data  (0                 ),
                .next  (back_init         )
            );
        end

        always_ff @ (posedge clk) begin
            if (s2_valid) begin
                state <= s2_part ^ (((first) ? ( back_init ) : ( back )));
            end
        end
    end else begin :g_back
        logic [32-1:0] next ;
        logic          first;

        gw_crc32_next #(
            .W (W)
        ) u_next (
            .state (((first) ? ( gw_crc32_pkg::INIT ) : ( state ))),
            .data  (clean                                         ),
            .next  (next                                          )
        );

        always_ff @ (posedge clk) begin
            if (rst) begin
                ending <= 0;
                first  <= 1;
            end else begin
                ending <= i_valid & i_last;
                if (i_valid) begin
                    first <= i_last;
                end
            end
        end

        always_ff @ (posedge clk) begin
            if (i_valid) begin
                state <= next;
            end
            removed <= missing;
        end
    end

    // Take back 8 x 2^k bits of zeros for each bit k of their number.
    localparam int unsigned Z = 7;

    logic [32-1:0] state_1;
    logic [Z-1:0]  count_1;
    logic          valid_1;
    gw_crc32_back #(
        .STAGE (0     ),
        .ON    (K >= 0),
        .PIPE  (PIPE  )
    ) u_back_0 (
        .clk     (clk        ),
        .rst     (rst        ),
        .i_state (state      ),
        .i_count (Z'(removed)),
        .i_valid (ending     ),
        .o_state (state_1    ),
        .o_count (count_1    ),
        .o_valid (valid_1    )
    );

    logic [32-1:0] state_2;
    logic [Z-1:0]  count_2;
    logic          valid_2;
    gw_crc32_back #(
        .STAGE (1     ),
        .ON    (K >= 1),
        .PIPE  (PIPE  )
    ) u_back_1 (
        .clk     (clk    ),
        .rst     (rst    ),
        .i_state (state_1),
        .i_count (count_1),
        .i_valid (valid_1),
        .o_state (state_2),
        .o_count (count_2),
        .o_valid (valid_2)
    );

    logic [32-1:0] state_3;
    logic [Z-1:0]  count_3;
    logic          valid_3;
    gw_crc32_back #(
        .STAGE (2     ),
        .ON    (K >= 2),
        .PIPE  (PIPE  )
    ) u_back_2 (
        .clk     (clk    ),
        .rst     (rst    ),
        .i_state (state_2),
        .i_count (count_2),
        .i_valid (valid_2),
        .o_state (state_3),
        .o_count (count_3),
        .o_valid (valid_3)
    );

    logic [32-1:0] state_4;
    logic [Z-1:0]  count_4;
    logic          valid_4;
    gw_crc32_back #(
        .STAGE (3     ),
        .ON    (K >= 3),
        .PIPE  (PIPE  )
    ) u_back_3 (
        .clk     (clk    ),
        .rst     (rst    ),
        .i_state (state_3),
        .i_count (count_3),
        .i_valid (valid_3),
        .o_state (state_4),
        .o_count (count_4),
        .o_valid (valid_4)
    );

    logic [32-1:0] state_5;
    logic [Z-1:0]  count_5;
    logic          valid_5;
    gw_crc32_back #(
        .STAGE (4     ),
        .ON    (K >= 4),
        .PIPE  (PIPE  )
    ) u_back_4 (
        .clk     (clk    ),
        .rst     (rst    ),
        .i_state (state_4),
        .i_count (count_4),
        .i_valid (valid_4),
        .o_state (state_5),
        .o_count (count_5),
        .o_valid (valid_5)
    );

    logic [32-1:0] state_6;
    logic [Z-1:0]  count_6;
    logic          valid_6;
    gw_crc32_back #(
        .STAGE (5     ),
        .ON    (K >= 5),
        .PIPE  (PIPE  )
    ) u_back_5 (
        .clk     (clk    ),
        .rst     (rst    ),
        .i_state (state_5),
        .i_count (count_5),
        .i_valid (valid_5),
        .o_state (state_6),
        .o_count (count_6),
        .o_valid (valid_6)
    );

    logic [32-1:0] state_7;
    logic [Z-1:0]  count_7;
    logic          valid_7;
    gw_crc32_back #(
        .STAGE (6     ),
        .ON    (K >= 6),
        .PIPE  (PIPE  )
    ) u_back_6 (
        .clk     (clk    ),
        .rst     (rst    ),
        .i_state (state_6),
        .i_count (count_6),
        .i_valid (valid_6),
        .o_state (state_7),
        .o_count (count_7),
        .o_valid (valid_7)
    );

    logic [Z-1:0] _count; always_comb _count = count_7;

    always_comb o_crc   = ~state_7;
    always_comb o_valid = valid_7;
endmodule

/// FIFO in one clock domain, first word falls through. `DEPTH` words in LUT RAM, or in block RAM
/// with `BLOCK` (then two words more, in the output registers). Latency from push to `o_valid`: one cycle, with `BLOCK` two.
module gw_fifo #(
    /// Data width in bits.
    parameter int unsigned W = 8,
    /// Words, a power of two, at least 4; 16 fills ECP5's LUT RAM.
    parameter int unsigned DEPTH = 16,
    /// Block RAM.
    parameter bit BLOCK = 1'b0
) (
    input  var logic         clk    ,
    input  var logic         rst    ,
    input  var logic [W-1:0] i_data ,
    input  var logic         i_valid,
    output var logic         i_ready,
    output var logic [W-1:0] o_data ,
    output var logic         o_valid,
    input  var logic         o_ready
);
    localparam int unsigned A = $clog2(DEPTH);

    logic [W-1:0]       ram  [DEPTH];
    logic [(A + 1)-1:0] wp          ;
    logic [(A + 1)-1:0] rp          ;
    logic               push        ;
    logic               pop         ;
    logic               some        ; always_comb some         = wp != rp;

    always_comb i_ready = (wp[A - 1:0] != rp[A - 1:0]) | (wp[A] == rp[A]);
    always_comb push    = i_valid & i_ready;

    always_ff @ (posedge clk) begin
        if (rst) begin
            wp <= 0;
            rp <= 0;
        end else begin
            if (push) begin
                wp <= wp + 1;
            end
            if (pop) begin
                rp <= rp + 1;
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (push) begin
            ram[wp[A - 1:0]] <= i_data;
        end
    end

    if (BLOCK) begin :g_block
        logic [W-1:0] q      ;
        logic         q_valid;
        logic [W-1:0] d      ;
        logic         d_valid;
        logic         d_free ; always_comb d_free  = ~d_valid | o_ready;

        // Two registers behind the RAM, so that a word leaves on every cycle.
        always_comb pop     = some & (~q_valid | d_free);
        always_comb o_data  = d;
        always_comb o_valid = d_valid;

        always_ff @ (posedge clk) begin
            if (rst) begin
                q_valid <= 0;
                d_valid <= 0;
            end else begin
                if (~q_valid | d_free) begin
                    q_valid <= some;
                end
                if (d_free) begin
                    d_valid <= q_valid;
                end
            end
        end

        always_ff @ (posedge clk) begin
            if (pop) begin
                q <= ram[rp[A - 1:0]];
            end
        end

        always_ff @ (posedge clk) begin
            if (d_free) begin
                d <= q;
            end
        end
    end else begin :g_block
        always_comb pop     = some & o_ready;
        always_comb o_data  = ram[rp[A - 1:0]];
        always_comb o_valid = some;
    end
endmodule

/// A Gray counter that needs no binary twin: the parity bit tells whether bit 0 or the bit above
/// the lowest one changes. Its value may also address a RAM, any order of addresses being as good.
module gw_gray_pointer #(
    /// Width, at least 3.
    parameter int unsigned N = 5
) (
    input  var logic         clk    ,
    input  var logic         rst    ,
    input  var logic         clear  ,
    input  var logic         advance,
    output var logic [N-1:0] value  
);
    logic         parity;
    logic [N-1:0] gray  ;
    logic [N-1:0] flip  ;

    always_comb value = gray;

    always_comb flip[0]     = ~parity;
    always_comb flip[1]     = parity & gray[0];
    always_comb flip[N - 1] = parity & (gray[N - 3:0] == 0);

    for (genvar i = 2; i < N - 1; i++) begin :g_flip
        always_comb flip[i] = parity & gray[i - 1] & (gray[i - 2:0] == 0);
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            parity <= 0;
            gray   <= 0;
        end else if (clear) begin
            parity <= 0;
            gray   <= 0;
        end else if (advance) begin
            parity <= ~parity;
            gray   <= gray ^ flip;
        end
    end
endmodule

/// The short form of `tkeep` and `tlast` inside FIFOs: `{L, N}` of `keep_code_pkg::width(B)` bits.
///
/// L = 1: last beat with N + 1 bytes. L = 0: N = 0 is a full beat that is not the last, N = 1 the
/// last beat of a packet without bytes.
package gw_keep_code_pkg;
    /// Width of the code for beats of `b` bytes.
    function automatic int unsigned width(
        input var int unsigned b
    ) ;
        return ((b < 4) ? ( 2 ) : ( $clog2(b) + 1 ));
    endfunction
endpackage

/// `keep`, `last` to code.
module gw_keep_encode #(
    /// Bytes in a beat.
    parameter int unsigned B = 4,
    /// Width of the code.
    parameter int unsigned C = ((B < 4) ? ( 2 ) : ( $clog2(B) + 1 ))
) (
    input  var logic [B-1:0] keep,
    input  var logic         last,
    output var logic [C-1:0] code
);
    always_comb code[C - 1] = last & keep[0];

    // keep[B-1:1] is a thermometer; bit k of its height is the parity of every 2^k-th mark.
    for (genvar k = 0; k < C - 1; k++) begin :g_bit
        logic [B-1:0] marks;
        for (genvar m = 0; m < B; m++) begin :g_mark
            if (m != 0 && m % (1 << k) == 0) begin :g_on
                always_comb marks[m] = keep[m];
            end else begin :g_on
                always_comb marks[m] = 0;
            end
        end
        if (k == 0) begin :g_low
            always_comb code[k] = last & (^marks | ~keep[0]);
        end else begin :g_low
            always_comb code[k] = last & ^marks;
        end
    end
endmodule

/// Code to `keep`, `last`.
module gw_keep_decode #(
    /// Bytes in a beat.
    parameter int unsigned B = 4,
    /// Width of the code.
    parameter int unsigned C = ((B < 4) ? ( 2 ) : ( $clog2(B) + 1 ))
) (
    input  var logic [C-1:0] code,
    output var logic [B-1:0] keep,
    output var logic         last
);
    logic empty; always_comb empty = ~code[C - 1] & code[0];

    always_comb last    = code[C - 1] | code[0];
    always_comb keep[0] = ~empty;
    for (genvar i = 1; i < B; i++) begin :g_keep
        always_comb keep[i] = ((code[C - 1]) ? ( code[C - 2:0] >= (C - 1)'(i) ) : ( ~code[0] ));
    end
endmodule

/// A packets link: `rx` flows from provider to client, `tx` from client to provider.
///
/// Byte 0 of a packet is in bits 7:0 of its first beat. `tkeep` is contiguous from bit 0 and all
/// ones except on the last beat; a packet without bytes is one beat with `tlast` = 1, `tkeep` = 0.
/// `terr` counts only with `tlast`; `tuser` is constant over a packet. Once `tvalid` is 1 the beat
/// stays until `tready` is 1; `tready` never depends combinationally on `tvalid`.
interface kinds_packets #(
    /// Data width in bits: 8, 16, 32, 64, 128, 256 or 512.
    parameter int unsigned W = 32,
    /// Width of `rx_tuser`.
    parameter int unsigned RU = 1,
    /// Width of `tx_tuser`.
    parameter int unsigned TU = 1
);
    logic [W-1:0]       rx_tdata ;
    logic [(W / 8)-1:0] rx_tkeep ;
    logic               rx_tlast ;
    logic               rx_terr  ;
    logic [RU-1:0]      rx_tuser ;
    logic               rx_tvalid;
    logic               rx_tready;

    logic [W-1:0]       tx_tdata ;
    logic [(W / 8)-1:0] tx_tkeep ;
    logic               tx_tlast ;
    logic               tx_terr  ;
    logic [TU-1:0]      tx_tuser ;
    logic               tx_tvalid;
    logic               tx_tready;

    /// One pulse per packet of `tx`, in order, when the provider has taken or refused it.
    logic tx_done;
    /// 0 sent, 1 no address yet, 2 too long or malformed, 3 no resource; counts with `tx_done`.
    logic [2-1:0] tx_status;

    modport provider (
        output rx_tdata ,
        output rx_tkeep ,
        output rx_tlast ,
        output rx_terr  ,
        output rx_tuser ,
        output rx_tvalid,
        input  rx_tready,
        input  tx_tdata ,
        input  tx_tkeep ,
        input  tx_tlast ,
        input  tx_terr  ,
        input  tx_tuser ,
        input  tx_tvalid,
        output tx_tready,
        output tx_done  ,
        output tx_status
    );

    modport client (
        input  rx_tdata ,
        input  rx_tkeep ,
        input  rx_tlast ,
        input  rx_terr  ,
        input  rx_tuser ,
        input  rx_tvalid,
        output rx_tready,
        output tx_tdata ,
        output tx_tkeep ,
        output tx_tlast ,
        output tx_terr  ,
        output tx_tuser ,
        output tx_tvalid,
        input  tx_tready,
        input  tx_done  ,
        input  tx_status
    );
endinterface

/// Ties off a provider's packets port that has no link: all that arrives is thrown away, nothing
/// is sent.
module gw_packets_stub_client (
    kinds_packets.client p
);
    always_comb p.rx_tready = 1;
    always_comb p.tx_tdata  = 0;
    always_comb p.tx_tkeep  = 0;
    always_comb p.tx_tlast  = 0;
    always_comb p.tx_terr   = 0;
    always_comb p.tx_tuser  = 0;
    always_comb p.tx_tvalid = 0;
endmodule

/// Ties off a client's packets port that has no link: nothing arrives, all that is sent is taken,
/// thrown away and answered with 3 (no resource).
module gw_packets_stub_provider (
    kinds_packets.provider p
);
    always_comb p.rx_tdata  = 0;
    always_comb p.rx_tkeep  = 0;
    always_comb p.rx_tlast  = 0;
    always_comb p.rx_terr   = 0;
    always_comb p.rx_tuser  = 0;
    always_comb p.rx_tvalid = 0;
    always_comb p.tx_tready = 1;
    always_comb p.tx_done   = p.tx_tvalid & p.tx_tlast;
    always_comb p.tx_status = 3;
endmodule

/// The reset of one clock domain: asserted at once and without a clock, released `STAGES` edges
/// of `clk` after `arst` is. While the clock is absent the reset stays asserted.
module gw_reset_bridge #(
    /// Edges from release of `arst` to release of `rst`, at least 2.
    parameter int unsigned STAGES = 4
) (
    input var logic clk,
    /// 1 = reset, from any domain or none (button, PLL lock).
    input  var logic arst,
    output var logic rst 
);
    (* ASYNC_REG = "TRUE" *)
    logic [STAGES-1:0] chain;

    always_ff @ (posedge clk, posedge arst) begin
        if (arst) begin
            chain <= '1;
        end else begin
            chain <= {chain[STAGES - 2:0], 1'b0};
        end
    end

    always_comb rst = chain[STAGES - 1];
endmodule

/// FIFO for one direction of a packets link.
module gw_stream_fifo #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `user`.
    parameter int unsigned U = 1,
    /// Beats, a power of two.
    parameter int unsigned DEPTH = 16,
    /// Block RAM instead of LUT RAM.
    parameter bit BLOCK = 1'b0
) (
    input  var logic               clk    ,
    input  var logic               rst    ,
    input  var logic [W-1:0]       i_data ,
    input  var logic [(W / 8)-1:0] i_keep ,
    input  var logic               i_last ,
    input  var logic               i_err  ,
    input  var logic [U-1:0]       i_user ,
    input  var logic               i_valid,
    output var logic               i_ready,
    output var logic [W-1:0]       o_data ,
    output var logic [(W / 8)-1:0] o_keep ,
    output var logic               o_last ,
    output var logic               o_err  ,
    output var logic [U-1:0]       o_user ,
    output var logic               o_valid,
    input  var logic               o_ready
);
    localparam int unsigned B = W / 8;
    localparam int unsigned C = ((B < 4) ? ( 2 ) : ( $clog2(B) + 1 ));

    logic [C-1:0]               i_code;
    logic [C-1:0]               o_code;
    logic [(U + 1 + C + W)-1:0] o_all ;

    gw_keep_encode #(
        .B (B)
    ) u_encode (
        .keep (i_keep),
        .last (i_last),
        .code (i_code)
    );

    gw_fifo #(
        .W     (U + 1 + C + W),
        .DEPTH (DEPTH        ),
        .BLOCK (BLOCK        )
    ) u_fifo (
        .clk     (clk                            ),
        .rst     (rst                            ),
        .i_data  ({i_user, i_err, i_code, i_data}),
        .i_valid (i_valid                        ),
        .i_ready (i_ready                        ),
        .o_data  (o_all                          ),
        .o_valid (o_valid                        ),
        .o_ready (o_ready                        )
    );

    gw_keep_decode #(
        .B (B)
    ) u_decode (
        .code (o_code),
        .keep (o_keep),
        .last (o_last)
    );

    always_comb o_data = o_all[W - 1:0];
    always_comb o_code = o_all[W + C - 1:W];
    always_comb o_err  = o_all[W + C];
    always_comb o_user = o_all[W + C + U:W + C + 1];
endmodule

/// FIFO on both directions of a packets link.
module gw_packet_fifo #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `rx_tuser`.
    parameter int unsigned RU = 1,
    /// Width of `tx_tuser`.
    parameter int unsigned TU = 1,
    /// Beats each way, a power of two.
    parameter int unsigned DEPTH = 16,
    /// Block RAM instead of LUT RAM.
    parameter bit BLOCK = 1'b0
) (
    input var logic clk,
    input var logic rst,
    /// The side of the provider.
    kinds_packets.client up,
    /// The side of the client.
    kinds_packets.provider down
);
    gw_stream_fifo #(
        .W     (W    ),
        .U     (RU   ),
        .DEPTH (DEPTH),
        .BLOCK (BLOCK)
    ) u_rx (
        .clk     (clk           ),
        .rst     (rst           ),
        .i_data  (up.rx_tdata   ),
        .i_keep  (up.rx_tkeep   ),
        .i_last  (up.rx_tlast   ),
        .i_err   (up.rx_terr    ),
        .i_user  (up.rx_tuser   ),
        .i_valid (up.rx_tvalid  ),
        .i_ready (up.rx_tready  ),
        .o_data  (down.rx_tdata ),
        .o_keep  (down.rx_tkeep ),
        .o_last  (down.rx_tlast ),
        .o_err   (down.rx_terr  ),
        .o_user  (down.rx_tuser ),
        .o_valid (down.rx_tvalid),
        .o_ready (down.rx_tready)
    );

    gw_stream_fifo #(
        .W     (W    ),
        .U     (TU   ),
        .DEPTH (DEPTH),
        .BLOCK (BLOCK)
    ) u_tx (
        .clk     (clk           ),
        .rst     (rst           ),
        .i_data  (down.tx_tdata ),
        .i_keep  (down.tx_tkeep ),
        .i_last  (down.tx_tlast ),
        .i_err   (down.tx_terr  ),
        .i_user  (down.tx_tuser ),
        .i_valid (down.tx_tvalid),
        .i_ready (down.tx_tready),
        .o_data  (up.tx_tdata   ),
        .o_keep  (up.tx_tkeep   ),
        .o_last  (up.tx_tlast   ),
        .o_err   (up.tx_terr    ),
        .o_user  (up.tx_tuser   ),
        .o_valid (up.tx_tvalid  ),
        .o_ready (up.tx_tready  )
    );

    always_comb down.tx_done   = up.tx_done;
    always_comb down.tx_status = up.tx_status;
endmodule

/// Wide beats to narrow ones, one direction of a packets link. Gives a beat per cycle without a
/// bubble between wide beats or frames. `i_ready` follows `o_ready` combinationally.
module gw_stream_narrow #(
    /// Width in, in bits: `WO` x 2^n, n at least 1.
    parameter int unsigned WI = 32,
    /// Width out.
    parameter int unsigned WO = 8,
    /// Width of `user`.
    parameter int unsigned U = 1
) (
    input  var logic                clk    ,
    input  var logic                rst    ,
    input  var logic [WI-1:0]       i_data ,
    input  var logic [(WI / 8)-1:0] i_keep ,
    input  var logic                i_last ,
    input  var logic                i_err  ,
    input  var logic [U-1:0]        i_user ,
    input  var logic                i_valid,
    output var logic                i_ready,
    output var logic [WO-1:0]       o_data ,
    output var logic [(WO / 8)-1:0] o_keep ,
    output var logic                o_last ,
    output var logic                o_err  ,
    output var logic [U-1:0]        o_user ,
    output var logic                o_valid,
    input  var logic                o_ready
);
    localparam int unsigned BI = WI / 8;
    localparam int unsigned BO = WO / 8;

    logic [WI-1:0] data   ;
    logic [BI-1:0] keep   ;
    logic          last   ;
    logic          closing; always_comb closing = ~keep[BO]; // the lane above is empty

    always_comb i_ready = ~o_valid | (o_ready & closing);
    always_comb o_data  = data[WO - 1:0];
    always_comb o_keep  = keep[BO - 1:0];
    always_comb o_last  = last & closing;

    always_ff @ (posedge clk) begin
        if (rst) begin
            o_valid <= 0;
        end else if (i_ready) begin
            o_valid <= i_valid;
        end
    end

    always_ff @ (posedge clk) begin
        if (i_ready) begin
            data   <= i_data;
            keep   <= i_keep;
            last   <= i_last;
            o_err  <= i_err;
            o_user <= i_user;
        end else if (o_ready) begin
            data <= data >> WO;
            keep <= keep >> BO;
        end
    end
endmodule

/// Cuts every combinational path of one direction of a packets link: two registers, one beat per
/// cycle, one cycle of latency.
module gw_stream_slice #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `user`.
    parameter int unsigned U = 1
) (
    input  var logic               clk    ,
    input  var logic               rst    ,
    input  var logic [W-1:0]       i_data ,
    input  var logic [(W / 8)-1:0] i_keep ,
    input  var logic               i_last ,
    input  var logic               i_err  ,
    input  var logic [U-1:0]       i_user ,
    input  var logic               i_valid,
    output var logic               i_ready,
    output var logic [W-1:0]       o_data ,
    output var logic [(W / 8)-1:0] o_keep ,
    output var logic               o_last ,
    output var logic               o_err  ,
    output var logic [U-1:0]       o_user ,
    output var logic               o_valid,
    input  var logic               o_ready
);
    localparam int unsigned T = W + W / 8 + 2 + U;

    logic [T-1:0] head   ;
    logic [T-1:0] spare  ;
    logic         spared ;
    logic [T-1:0] in_beat; always_comb in_beat = {i_user, i_err, i_last, i_keep, i_data};

    always_comb i_ready = ~spared;

    always_comb o_data = head[W - 1:0];
    always_comb o_keep = head[W + W / 8 - 1:W];
    always_comb o_last = head[W + W / 8];
    always_comb o_err  = head[W + W / 8 + 1];
    always_comb o_user = head[T - 1:W + W / 8 + 2];

    always_ff @ (posedge clk) begin
        if (rst) begin
            o_valid <= 0;
            spared  <= 0;
        end else if (~o_valid | o_ready) begin
            o_valid <= spared | i_valid;
            spared  <= 0;
        end else if (i_valid & i_ready) begin
            spared <= 1;
        end
    end

    always_ff @ (posedge clk) begin
        if (~o_valid | o_ready) begin
            head <= ((spared) ? ( spare ) : ( in_beat ));
        end
        if (i_ready) begin
            spare <= in_beat;
        end
    end
endmodule

/// Cuts every combinational path of a packets link; one cycle of latency each way.
module gw_packet_slice #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `rx_tuser`.
    parameter int unsigned RU = 1,
    /// Width of `tx_tuser`.
    parameter int unsigned TU = 1
) (
    input var logic clk,
    input var logic rst,
    /// The side of the provider.
    kinds_packets.client up,
    /// The side of the client.
    kinds_packets.provider down
);
    gw_stream_slice #(
        .W (W ),
        .U (RU)
    ) u_rx (
        .clk     (clk           ),
        .rst     (rst           ),
        .i_data  (up.rx_tdata   ),
        .i_keep  (up.rx_tkeep   ),
        .i_last  (up.rx_tlast   ),
        .i_err   (up.rx_terr    ),
        .i_user  (up.rx_tuser   ),
        .i_valid (up.rx_tvalid  ),
        .i_ready (up.rx_tready  ),
        .o_data  (down.rx_tdata ),
        .o_keep  (down.rx_tkeep ),
        .o_last  (down.rx_tlast ),
        .o_err   (down.rx_terr  ),
        .o_user  (down.rx_tuser ),
        .o_valid (down.rx_tvalid),
        .o_ready (down.rx_tready)
    );

    gw_stream_slice #(
        .W (W ),
        .U (TU)
    ) u_tx (
        .clk     (clk           ),
        .rst     (rst           ),
        .i_data  (down.tx_tdata ),
        .i_keep  (down.tx_tkeep ),
        .i_last  (down.tx_tlast ),
        .i_err   (down.tx_terr  ),
        .i_user  (down.tx_tuser ),
        .i_valid (down.tx_tvalid),
        .i_ready (down.tx_tready),
        .o_data  (up.tx_tdata   ),
        .o_keep  (up.tx_tkeep   ),
        .o_last  (up.tx_tlast   ),
        .o_err   (up.tx_terr    ),
        .o_user  (up.tx_tuser   ),
        .o_valid (up.tx_tvalid  ),
        .o_ready (up.tx_tready  )
    );

    always_comb down.tx_done   = up.tx_done;
    always_comb down.tx_status = up.tx_status;
endmodule

/// Stores a packet whole in block RAM and lets it go in one piece, a beat on every cycle in which
/// `o_ready` is 1. A packet that ends with `err` vanishes without a trace.
///
/// A packet longer than `DEPTH` beats vanishes too. When the store is full, `DROP` says whether
/// the packet is dropped whole or the source has to wait.
module gw_stream_store #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `user`.
    parameter int unsigned U = 1,
    /// Capacity in beats, a power of two, at least 4.
    parameter int unsigned DEPTH = 512,
    /// Full: drop instead of wait.
    parameter bit DROP = 1'b0
) (
    input  var logic               clk    ,
    input  var logic               rst    ,
    input  var logic [W-1:0]       i_data ,
    input  var logic [(W / 8)-1:0] i_keep ,
    input  var logic               i_last ,
    input  var logic               i_err  ,
    input  var logic [U-1:0]       i_user ,
    input  var logic               i_valid,
    output var logic               i_ready,
    /// One pulse per packet that came in, when its fate is known.
    output var logic done,
    /// 0 stored, 2 aborted by its source or too long, 3 no room.
    output var logic [2-1:0]       status ,
    output var logic [W-1:0]       o_data ,
    output var logic [(W / 8)-1:0] o_keep ,
    output var logic               o_last ,
    output var logic [U-1:0]       o_user ,
    output var logic               o_valid,
    input  var logic               o_ready
);
    localparam int unsigned B = W / 8;
    localparam int unsigned C = ((B < 4) ? ( 2 ) : ( $clog2(B) + 1 ));
    localparam int unsigned A = $clog2(DEPTH);
    localparam int unsigned T = U + C + W;

    logic [C-1:0] i_code;

    gw_keep_encode #(
        .B (B)
    ) u_encode (
        .keep (i_keep),
        .last (i_last),
        .code (i_code)
    );

    // Writing: `wp` runs ahead of `cp`, the end of the last packet that is whole.
    logic [T-1:0]       ram   [DEPTH];
    logic [(A + 1)-1:0] wp           ;
    logic [(A + 1)-1:0] cp           ;
    logic [(A + 1)-1:0] rp           ;
    logic               skip         ; // the rest of a packet that is already lost
    logic               full         ; always_comb full          = (wp[A] != rp[A]) & (wp[A - 1:0] == rp[A - 1:0]);
    logic               alone        ; always_comb alone         = cp == rp; // all that is stored is the packet coming in
    logic               take         ; always_comb take          = i_valid & i_ready;
    logic               write        ; always_comb write         = take & ~skip & ~full;
    logic               lose         ; always_comb lose          = take & ~skip & (full | (i_last & i_err));
    logic [(A + 1)-1:0] next         ; always_comb next          = wp + 1;

    always_comb i_ready = DROP | ~full | skip | alone;

    always_ff @ (posedge clk) begin
        if (rst) begin
            wp   <= 0;
            cp   <= 0;
            skip <= 0;
        end else begin
            if (lose) begin
                wp <= cp;
            end else if (write) begin
                wp <= next;
            end
            if (write & i_last & ~i_err) begin
                cp <= next;
            end
            if (take) begin
                skip <= ~i_last & (skip | full);
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (write) begin
            ram[wp[A - 1:0]] <= {i_user, i_code, i_data};
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            done <= 0;
        end else begin
            done <= lose | (write & i_last);
        end
    end

    always_ff @ (posedge clk) begin
        status <= ((~lose) ? ( 0 ) : (full & ~alone) ? ( 3 ) : ( 2 ));
    end

    // Reading: two registers behind the RAM, so that a beat leaves on every cycle.
    logic [T-1:0] q      ;
    logic         q_valid;
    logic [T-1:0] d      ;
    logic         some   ; always_comb some    = rp != cp;
    logic         d_free ; always_comb d_free  = ~o_valid | o_ready;
    logic         pop    ; always_comb pop     = some & (~q_valid | d_free);

    always_ff @ (posedge clk) begin
        if (rst) begin
            rp      <= 0;
            q_valid <= 0;
            o_valid <= 0;
        end else begin
            if (pop) begin
                rp <= rp + 1;
            end
            if (~q_valid | d_free) begin
                q_valid <= some;
            end
            if (d_free) begin
                o_valid <= q_valid;
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (pop) begin
            q <= ram[rp[A - 1:0]];
        end
    end

    always_ff @ (posedge clk) begin
        if (d_free) begin
            d <= q;
        end
    end

    gw_keep_decode #(
        .B (B)
    ) u_decode (
        .code (d[W + C - 1:W]),
        .keep (o_keep        ),
        .last (o_last        )
    );

    always_comb o_data = d[W - 1:0];
    always_comb o_user = d[T - 1:W + C];
endmodule

/// Store and forward on `tx` of a link whose provider needs a packet in one piece; `rx` passes through.
/// The store answers `tx_done` itself (0 stored, 2 aborted or longer than the store); packets that the client aborts never reach the provider.
/// Meant for `eth-frames`, where the provider's own answer says no more.
module gw_packet_store #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `rx_tuser`.
    parameter int unsigned RU = 1,
    /// Width of `tx_tuser`.
    parameter int unsigned TU = 1,
    /// Capacity in bytes, a power of two, more than the longest packet.
    parameter int unsigned BYTES = 2048
) (
    input var logic clk,
    input var logic rst,
    /// The side of the provider.
    kinds_packets.client up,
    /// The side of the client.
    kinds_packets.provider down
);
    always_comb down.rx_tdata  = up.rx_tdata;
    always_comb down.rx_tkeep  = up.rx_tkeep;
    always_comb down.rx_tlast  = up.rx_tlast;
    always_comb down.rx_terr   = up.rx_terr;
    always_comb down.rx_tuser  = up.rx_tuser;
    always_comb down.rx_tvalid = up.rx_tvalid;
    always_comb up.rx_tready   = down.rx_tready;

    gw_stream_store #(
        .W     (W              ),
        .U     (TU             ),
        .DEPTH (BYTES / (W / 8))
    ) u_tx (
        .clk     (clk           ),
        .rst     (rst           ),
        .i_data  (down.tx_tdata ),
        .i_keep  (down.tx_tkeep ),
        .i_last  (down.tx_tlast ),
        .i_err   (down.tx_terr  ),
        .i_user  (down.tx_tuser ),
        .i_valid (down.tx_tvalid),
        .i_ready (down.tx_tready),
        .done    (down.tx_done  ),
        .status  (down.tx_status),
        .o_data  (up.tx_tdata   ),
        .o_keep  (up.tx_tkeep   ),
        .o_last  (up.tx_tlast   ),
        .o_user  (up.tx_tuser   ),
        .o_valid (up.tx_tvalid  ),
        .o_ready (up.tx_tready  )
    );

    always_comb up.tx_terr = 0;
endmodule

/// Narrow beats to wide ones, one direction of a packets link. Takes a beat per cycle; a frame
/// that ends on any lane leaves at once, so that frames of one beat pass at one per cycle.
/// `i_ready` follows `o_ready` combinationally.
module gw_stream_widen #(
    /// Width in, in bits.
    parameter int unsigned WI = 8,
    /// Width out: `WI` x 2^n, n at least 1.
    parameter int unsigned WO = 32,
    /// Width of `user`.
    parameter int unsigned U = 1
) (
    input  var logic                clk    ,
    input  var logic                rst    ,
    input  var logic [WI-1:0]       i_data ,
    input  var logic [(WI / 8)-1:0] i_keep ,
    input  var logic                i_last ,
    input  var logic                i_err  ,
    input  var logic [U-1:0]        i_user ,
    input  var logic                i_valid,
    output var logic                i_ready,
    output var logic [WO-1:0]       o_data ,
    output var logic [(WO / 8)-1:0] o_keep ,
    output var logic                o_last ,
    output var logic                o_err  ,
    output var logic [U-1:0]        o_user ,
    output var logic                o_valid,
    input  var logic                o_ready
);
    localparam int unsigned N  = WO / WI;
    localparam int unsigned L  = $clog2(N);
    localparam int unsigned BI = WI / 8;

    logic [L-1:0] lane;
    logic         take; always_comb take = i_valid & i_ready;

    always_comb i_ready = ~o_valid | o_ready;

    always_ff @ (posedge clk) begin
        if (rst) begin
            lane    <= 0;
            o_valid <= 0;
        end else if (i_ready) begin
            o_valid <= take & (i_last | (lane == '1));
            if (i_last & i_valid) begin
                lane <= 0;
            end else if (i_valid) begin
                lane <= lane + 1;
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (take) begin
            o_last <= i_last;
            o_err  <= i_err;
            o_user <= i_user;
        end
    end

    for (genvar k = 0; k < N; k++) begin :g_lane
        always_ff @ (posedge clk) begin
            if (take & (lane == L'(k))) begin
                o_data[k * WI+:WI] <= i_data;
            end
        end

        always_ff @ (posedge clk) begin
            if (take & (lane == L'(k))) begin
                o_keep[k * BI+:BI] <= i_keep;
            end else if (take & (lane == 0)) begin
                o_keep[k * BI+:BI] <= 0;
            end
        end
    end
endmodule

/// Width conversion of a packets link, in one clock domain.
module gw_packet_width #(
    /// Data width of the provider in bits.
    parameter int unsigned UP = 32,
    /// Data width of the client in bits; not the same.
    parameter int unsigned DOWN = 8,
    /// Width of `rx_tuser`.
    parameter int unsigned RU = 1,
    /// Width of `tx_tuser`.
    parameter int unsigned TU = 1
) (
    input var logic clk,
    input var logic rst,
    /// The side of the provider.
    kinds_packets.client up,
    /// The side of the client.
    kinds_packets.provider down
);
    if (UP > DOWN) begin :g_width
        gw_stream_narrow #(
            .WI (UP  ),
            .WO (DOWN),
            .U  (RU  )
        ) u_rx (
            .clk     (clk           ),
            .rst     (rst           ),
            .i_data  (up.rx_tdata   ),
            .i_keep  (up.rx_tkeep   ),
            .i_last  (up.rx_tlast   ),
            .i_err   (up.rx_terr    ),
            .i_user  (up.rx_tuser   ),
            .i_valid (up.rx_tvalid  ),
            .i_ready (up.rx_tready  ),
            .o_data  (down.rx_tdata ),
            .o_keep  (down.rx_tkeep ),
            .o_last  (down.rx_tlast ),
            .o_err   (down.rx_terr  ),
            .o_user  (down.rx_tuser ),
            .o_valid (down.rx_tvalid),
            .o_ready (down.rx_tready)
        );

        gw_stream_widen #(
            .WI (DOWN),
            .WO (UP  ),
            .U  (TU  )
        ) u_tx (
            .clk     (clk           ),
            .rst     (rst           ),
            .i_data  (down.tx_tdata ),
            .i_keep  (down.tx_tkeep ),
            .i_last  (down.tx_tlast ),
            .i_err   (down.tx_terr  ),
            .i_user  (down.tx_tuser ),
            .i_valid (down.tx_tvalid),
            .i_ready (down.tx_tready),
            .o_data  (up.tx_tdata   ),
            .o_keep  (up.tx_tkeep   ),
            .o_last  (up.tx_tlast   ),
            .o_err   (up.tx_terr    ),
            .o_user  (up.tx_tuser   ),
            .o_valid (up.tx_tvalid  ),
            .o_ready (up.tx_tready  )
        );
    end else begin :g_width
        gw_stream_widen #(
            .WI (UP  ),
            .WO (DOWN),
            .U  (RU  )
        ) u_rx (
            .clk     (clk           ),
            .rst     (rst           ),
            .i_data  (up.rx_tdata   ),
            .i_keep  (up.rx_tkeep   ),
            .i_last  (up.rx_tlast   ),
            .i_err   (up.rx_terr    ),
            .i_user  (up.rx_tuser   ),
            .i_valid (up.rx_tvalid  ),
            .i_ready (up.rx_tready  ),
            .o_data  (down.rx_tdata ),
            .o_keep  (down.rx_tkeep ),
            .o_last  (down.rx_tlast ),
            .o_err   (down.rx_terr  ),
            .o_user  (down.rx_tuser ),
            .o_valid (down.rx_tvalid),
            .o_ready (down.rx_tready)
        );

        gw_stream_narrow #(
            .WI (DOWN),
            .WO (UP  ),
            .U  (TU  )
        ) u_tx (
            .clk     (clk           ),
            .rst     (rst           ),
            .i_data  (down.tx_tdata ),
            .i_keep  (down.tx_tkeep ),
            .i_last  (down.tx_tlast ),
            .i_err   (down.tx_terr  ),
            .i_user  (down.tx_tuser ),
            .i_valid (down.tx_tvalid),
            .i_ready (down.tx_tready),
            .o_data  (up.tx_tdata   ),
            .o_keep  (up.tx_tkeep   ),
            .o_last  (up.tx_tlast   ),
            .o_err   (up.tx_terr    ),
            .o_user  (up.tx_tuser   ),
            .o_valid (up.tx_tvalid  ),
            .o_ready (up.tx_tready  )
        );
    end

    always_comb down.tx_done   = up.tx_done;
    always_comb down.tx_status = up.tx_status;
endmodule

/// Brings signals that change one at a time (or rarely) into the domain of `clk`: `STAGES`
/// flip-flops in a row. For more than one bit only Gray codes and quasi-static values are legal.
module gw_sync_bit #(
    /// How many bits.
    parameter int unsigned W = 1,
    /// Flip-flops in a row, at least 2.
    parameter int unsigned STAGES = 2
) (
    input  var logic         clk,
    input  var logic [W-1:0] i  ,
    output var logic [W-1:0] o  
);
    (* ASYNC_REG = "TRUE" *)
    logic [W-1:0] meta [STAGES];

    always_comb o = meta[STAGES - 1];

    always_ff @ (posedge clk) begin
        meta[0] <= i;
        for (int k = 1; k < STAGES; k++) begin
            meta[k] <= meta[k - 1];
        end
    end

endmodule

/// Carries events to another domain one by one: each cycle with `i` = 1 gives one cycle with `o` = 1,
/// however close together, as long as no more than 2^`N` - 1 are on their way.
module gw_event_cdc #(
    /// Width of the Gray counters, at least 3.
    parameter int unsigned N = 4
) (
    input  var logic clk_i,
    input  var logic rst_i,
    input  var logic i    ,
    input  var logic clk_o,
    input  var logic rst_o,
    output var logic o
);
    logic [N-1:0] sent  ;
    logic         shut_s;
    logic [N-1:0] seen  ;
    logic [N-1:0] told  ;
    logic         shut_d;

    gw_gray_pointer #(
        .N (N)
    ) u_sent (
        .clk     (clk_i ),
        .rst     (rst_i ),
        .clear   (shut_s),
        .advance (i     ),
        .value   (sent  )
    );

    gw_sync_bit #(
        .W (N)
    ) u_seen (
        .clk (clk_o),
        .i   (sent ),
        .o   (seen )
    );

    gw_gray_pointer #(
        .N (N)
    ) u_told (
        .clk     (clk_o ),
        .rst     (rst_o ),
        .clear   (shut_d),
        .advance (o     ),
        .value   (told  )
    );

    gw_sync_bit u_shut_s (
        .clk (clk_i ),
        .i   (rst_o ),
        .o   (shut_s)
    );

    gw_sync_bit u_shut_d (
        .clk (clk_o ),
        .i   (rst_i ),
        .o   (shut_d)
    );

    always_comb o = ~shut_d & (seen != told);
endmodule

/// FIFO between two clock domains with Gray pointers, first word falls through.
///
/// Either side sees the FIFO as shut (not ready, not valid) while the other is in reset, also when
/// the other side's clock is absent. Latency from push to `o_valid`: two to three cycles of `clk_o`.
module gw_fifo_async #(
    /// Data width in bits.
    parameter int unsigned W = 8,
    /// Words, a power of two, at least 4; 16 fills ECP5's LUT RAM.
    parameter int unsigned DEPTH = 16,
    /// A register behind the RAM: one more cycle and one more word, for block RAM and for fast clocks.
    parameter bit OUT_REG = 1'b0
) (
    input  var logic         clk_i  ,
    input  var logic         rst_i  ,
    input  var logic [W-1:0] i_data ,
    input  var logic         i_valid,
    output var logic         i_ready,
    input  var logic         clk_o  ,
    input  var logic         rst_o  ,
    output var logic [W-1:0] o_data ,
    output var logic         o_valid,
    input  var logic         o_ready
);
    localparam int unsigned A = $clog2(DEPTH);
    localparam int unsigned N = A + 1;

    logic [W-1:0] ram    [DEPTH];
    logic [N-1:0] wp            ;
    logic [N-1:0] rp_s          ;
    logic         shut_s        ;
    logic         push          ;
    logic [N-1:0] rp            ;
    logic [N-1:0] wp_d          ;
    logic         shut_d        ;
    logic         pop           ;
    logic [W-1:0] q             ;

    // Addresses are the pointers themselves, with the two highest bits folded into one.
    logic [A-1:0] wa;
    logic [A-1:0] ra;
    always_comb wa = {wp[N - 1] ^ wp[N - 2], wp[N - 3:0]};
    always_comb ra = {rp[N - 1] ^ rp[N - 2], rp[N - 3:0]};

    always_comb i_ready = ~shut_s & (wp != {~rp_s[N - 1:N - 2], rp_s[N - 3:0]});
    always_comb push    = i_valid & i_ready;

    gw_gray_pointer #(
        .N (N)
    ) u_wp (
        .clk     (clk_i ),
        .rst     (rst_i ),
        .clear   (shut_s),
        .advance (push  ),
        .value   (wp    )
    );

    gw_gray_pointer #(
        .N (N)
    ) u_rp (
        .clk     (clk_o ),
        .rst     (rst_o ),
        .clear   (shut_d),
        .advance (pop   ),
        .value   (rp    )
    );

    gw_sync_bit #(
        .W (N)
    ) u_rp_s (
        .clk (clk_i),
        .i   (rp   ),
        .o   (rp_s )
    );

    gw_sync_bit #(
        .W (N)
    ) u_wp_d (
        .clk (clk_o),
        .i   (wp   ),
        .o   (wp_d )
    );

    gw_sync_bit u_shut_s (
        .clk (clk_i ),
        .i   (rst_o ),
        .o   (shut_s)
    );

    gw_sync_bit u_shut_d (
        .clk (clk_o ),
        .i   (rst_i ),
        .o   (shut_d)
    );

    always_ff @ (posedge clk_i) begin
        if (push) begin
            ram[wa] <= i_data;
        end
    end

    // The word at the read pointer has been stable since before the write pointer came across.
    logic some; always_comb some = ~shut_d & (rp != wp_d);

    if (OUT_REG) begin :g_reg
        logic q_valid;

        always_comb pop     = some & (~q_valid | o_ready);
        always_comb o_valid = q_valid;

        always_ff @ (posedge clk_o) begin
            if (rst_o) begin
                q_valid <= 0;
            end else if (~q_valid | o_ready) begin
                q_valid <= some;
            end
        end

        always_ff @ (posedge clk_o) begin
            if (pop) begin
                q <= ram[ra];
            end
        end

    end else begin :g_reg
        always_comb pop     = some & o_ready;
        always_comb o_valid = some;

        always_comb q = ram[ra];

    end

    always_comb o_data = q;
endmodule

/// One pulse of `i` in the domain of `clk_s` becomes one pulse of `o` in the domain of `clk_d`.
///
/// Pulses must be at least three cycles of the slower clock apart: closer ones cancel.
module gw_pulse_cdc (
    input  var logic clk_s,
    input  var logic rst_s,
    input  var logic i    ,
    input  var logic clk_d,
    input  var logic rst_d,
    output var logic o
);
    logic toggle;
    logic seen  ;
    logic last  ;

    always_ff @ (posedge clk_s) begin
        if (rst_s) begin
            toggle <= 0;
        end else if (i) begin
            toggle <= ~toggle;
        end
    end

    gw_sync_bit u_sync (
        .clk (clk_d ),
        .i   (toggle),
        .o   (seen  )
    );

    // During reset `last` follows, so that a toggle from before it is not taken for a pulse.
    logic armed;

    always_ff @ (posedge clk_d) begin
        last <= seen;
    end

    always_ff @ (posedge clk_d) begin
        if (rst_d) begin
            armed <= 0;
        end else begin
            armed <= 1;
        end
    end

    always_comb o = armed & (seen ^ last);
endmodule

/// Clock crossing for one direction of a packets link.
module gw_stream_cdc #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `user`.
    parameter int unsigned U = 1,
    /// Beats, a power of two, at least 8 for one beat per cycle.
    parameter int unsigned DEPTH = 16,
    /// A register behind the RAM (`fifo_async`).
    parameter bit OUT_REG = 1'b0
) (
    input  var logic               clk_i  ,
    input  var logic               rst_i  ,
    input  var logic [W-1:0]       i_data ,
    input  var logic [(W / 8)-1:0] i_keep ,
    input  var logic               i_last ,
    input  var logic               i_err  ,
    input  var logic [U-1:0]       i_user ,
    input  var logic               i_valid,
    output var logic               i_ready,
    input  var logic               clk_o  ,
    input  var logic               rst_o  ,
    output var logic [W-1:0]       o_data ,
    output var logic [(W / 8)-1:0] o_keep ,
    output var logic               o_last ,
    output var logic               o_err  ,
    output var logic [U-1:0]       o_user ,
    output var logic               o_valid,
    input  var logic               o_ready
);
    localparam int unsigned B = W / 8;
    localparam int unsigned C = ((B < 4) ? ( 2 ) : ( $clog2(B) + 1 ));

    logic [C-1:0]               i_code;
    logic [C-1:0]               o_code;
    logic [(U + 1 + C + W)-1:0] o_all ;

    gw_keep_encode #(
        .B (B)
    ) u_encode (
        .keep (i_keep),
        .last (i_last),
        .code (i_code)
    );

    gw_fifo_async #(
        .W       (U + 1 + C + W),
        .DEPTH   (DEPTH        ),
        .OUT_REG (OUT_REG      )
    ) u_fifo (
        .clk_i   (clk_i                          ),
        .rst_i   (rst_i                          ),
        .i_data  ({i_user, i_err, i_code, i_data}),
        .i_valid (i_valid                        ),
        .i_ready (i_ready                        ),
        .clk_o   (clk_o                          ),
        .rst_o   (rst_o                          ),
        .o_data  (o_all                          ),
        .o_valid (o_valid                        ),
        .o_ready (o_ready                        )
    );

    gw_keep_decode #(
        .B (B)
    ) u_decode (
        .code (o_code),
        .keep (o_keep),
        .last (o_last)
    );

    always_comb o_data = o_all[W - 1:0];
    always_comb o_code = o_all[W + C - 1:W];
    always_comb o_err  = o_all[W + C];
    always_comb o_user = o_all[W + C + U:W + C + 1];
endmodule

/// Clock crossing of a packets link. `tx_done` crosses in a FIFO of its own: one pulse per packet,
/// as long as no more than `DONES` answers wait for the client's clock.
module gw_packet_cdc #(
    /// Data width in bits.
    parameter int unsigned W = 32,
    /// Width of `rx_tuser`.
    parameter int unsigned RU = 1,
    /// Width of `tx_tuser`.
    parameter int unsigned TU = 1,
    /// Beats each way, a power of two.
    parameter int unsigned DEPTH = 16,
    /// A register behind the RAM (`fifo_async`).
    parameter bit OUT_REG = 1'b0,
    /// Answers on their way, a power of two.
    parameter int unsigned DONES = 32
) (
    input var logic clk_up,
    input var logic rst_up,
    /// The side of the provider, in the domain of `clk_up`.
    kinds_packets.client up      ,
    input var logic            clk_down,
    input var logic            rst_down,
    /// The side of the client, in the domain of `clk_down`.
    kinds_packets.provider down
);
    gw_stream_cdc #(
        .W       (W      ),
        .U       (RU     ),
        .DEPTH   (DEPTH  ),
        .OUT_REG (OUT_REG)
    ) u_rx (
        .clk_i   (clk_up        ),
        .rst_i   (rst_up        ),
        .clk_o   (clk_down      ),
        .rst_o   (rst_down      ),
        .i_data  (up.rx_tdata   ),
        .i_keep  (up.rx_tkeep   ),
        .i_last  (up.rx_tlast   ),
        .i_err   (up.rx_terr    ),
        .i_user  (up.rx_tuser   ),
        .i_valid (up.rx_tvalid  ),
        .i_ready (up.rx_tready  ),
        .o_data  (down.rx_tdata ),
        .o_keep  (down.rx_tkeep ),
        .o_last  (down.rx_tlast ),
        .o_err   (down.rx_terr  ),
        .o_user  (down.rx_tuser ),
        .o_valid (down.rx_tvalid),
        .o_ready (down.rx_tready)
    );

    gw_stream_cdc #(
        .W       (W      ),
        .U       (TU     ),
        .DEPTH   (DEPTH  ),
        .OUT_REG (OUT_REG)
    ) u_tx (
        .clk_i   (clk_down      ),
        .rst_i   (rst_down      ),
        .clk_o   (clk_up        ),
        .rst_o   (rst_up        ),
        .i_data  (down.tx_tdata ),
        .i_keep  (down.tx_tkeep ),
        .i_last  (down.tx_tlast ),
        .i_err   (down.tx_terr  ),
        .i_user  (down.tx_tuser ),
        .i_valid (down.tx_tvalid),
        .i_ready (down.tx_tready),
        .o_data  (up.tx_tdata   ),
        .o_keep  (up.tx_tkeep   ),
        .o_last  (up.tx_tlast   ),
        .o_err   (up.tx_terr    ),
        .o_user  (up.tx_tuser   ),
        .o_valid (up.tx_tvalid  ),
        .o_ready (up.tx_tready  )
    );

    gw_fifo_async #(
        .W     (2    ),
        .DEPTH (DONES)
    ) u_done (
        .clk_i   (clk_up        ),
        .rst_i   (rst_up        ),
        .i_data  (up.tx_status  ),
        .i_valid (up.tx_done    ),
        .i_ready (              ),
        .clk_o   (clk_down      ),
        .rst_o   (rst_down      ),
        .o_data  (down.tx_status),
        .o_valid (down.tx_done  ),
        .o_ready (1'b1          )
    );
endmodule
