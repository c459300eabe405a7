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

/// RGMII in-band status: what the PHY says between frames, once it has said the same eight times.
/// A PHY that says nothing leaves `link` at 0.
module mac_in_band (
    input var logic         clk,
    input var logic         rst,
    input var logic         dv ,
    input var logic         er ,
    input var logic [4-1:0] d  ,
    /// 1 = the PHY says that the link is up.
    output var logic link,
    /// 0 10 Mb/s, 1 100 Mb/s, 2 1000 Mb/s; counts with `link`.
    output var logic [2-1:0] speed,
    /// 1 = full duplex; counts with `link`.
    output var logic full
);
    logic [4-1:0] seen ;
    logic [3-1:0] times;
    logic         idle ; always_comb idle  = ~dv & ~er;

    always_ff @ (posedge clk) begin
        if (idle) begin
            seen <= d;
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            times <= 0;
            link  <= 0;
        end else if (idle) begin
            times <= ((seen == d) ? ( times + 1 ) : ( 0 ));
            if (times == '1) begin
                link <= seen[0];
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (idle & (times == '1)) begin
            speed <= seen[2:1];
            full  <= seen[3];
        end
    end
endmodule

/// Why a received frame ended as it did; travels with the last word through the receive FIFO.
package mac_reason;
    /// Passed on as good.
    localparam bit [3-1:0] GOOD = 0;
    /// Wrong FCS.
    localparam bit [3-1:0] FCS = 1;
    /// Shorter than 60 bytes without FCS.
    localparam bit [3-1:0] RUNT = 2;
    /// Longer than the limit; cut there.
    localparam bit [3-1:0] OVERSIZE = 3;
    /// The PHY signalled an error, or the preamble was broken.
    localparam bit [3-1:0] ERROR = 4;
    /// The FIFO was full; cut there.
    localparam bit [3-1:0] OVERFLOW = 5;
endpackage

/// Receive, bytes to words: finds the start delimiter, checks FCS, length and `er`, strips the FCS
/// and packs. Cannot be stopped; a frame leaves while it comes in, with its verdict on the last word.
///
/// `code` is that of `gw::keep_code`; a frame that leaves no byte behind is a word without bytes.
module mac_rx_bytes #(
    /// Width of a word in bits.
    parameter int unsigned W = 32,
    /// Longest frame in bytes, without FCS.
    parameter int unsigned MAX = 1518,
    /// Width of the code.
    parameter int unsigned C = ((W < 32) ? ( 2 ) : ( $clog2(W / 8) + 1 ))
) (
    input var logic clk,
    input var logic rst,
    /// The three below are looked at only when `ce` is 1.
    input  var logic         ce  ,
    input  var logic         dv  ,
    input  var logic         er  ,
    input  var logic [8-1:0] d   ,
    output var logic         push,
    output var logic [W-1:0] data,
    output var logic [C-1:0] code,
    output var logic [3-1:0] why 
);
    localparam int unsigned B = W / 8;
    localparam int unsigned N = $clog2(MAX + 2);

    logic          armed    ; // no byte since the last gap that rules out a start delimiter
    logic          frame    ;
    logic [N-1:0]  count    ; // bytes that left the delay line
    logic          full     ; // at least 59 of them
    logic          fault    ;
    logic [32-1:0] crc      ;
    logic [32-1:0] next     ;
    logic          lane_last; // this byte fills the word

    logic start  ; always_comb start   = ce & dv & armed & ~frame & (d == 8'hD5) & ~er;
    logic broken ; always_comb broken  = ce & dv & armed & ~frame & ((d != 8'hD5 & d != 8'h55) | er);
    logic advance; always_comb advance = ce & dv & frame;
    logic stop   ; always_comb stop    = ce & ~dv & frame;

    // Five bytes: the four of the FCS and the one before, which is the last when the frame stops.
    logic [8-1:0] line    [5];
    logic [5-1:0] there      ;
    logic         emit       ; always_comb emit        = (advance | stop) & there[4];
    logic         huge       ; always_comb huge        = emit & (count == N'(MAX));
    logic         closing    ; always_comb closing     = (emit & ~advance) | huge;

    always_ff @ (posedge clk) begin
        if (advance) begin
            line[0] <= d;
            for (int i = 1; i < 5; i++) begin
                line[i] <= line[i - 1];
            end
        end
        if (start) begin
            there <= 0;
        end else if (advance) begin
            there <= {there[3:0], 1'b1};
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            armed <= 0;
            frame <= 0;
        end else begin
            if (ce & ~dv) begin
                armed <= 1;
            end else if (broken | start) begin
                armed <= 0;
            end
            if (start) begin
                frame <= 1;
            end else if (stop | huge) begin
                frame <= 0;
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (start) begin
            count <= 0;
            full  <= 0;
            fault <= 0;
        end else begin
            if (emit) begin
                count <= count + 1;
                if (count[5:0] == 58) begin
                    full <= 1;
                end
            end
            if (advance & er) begin
                fault <= 1;
            end
        end
    end

    gw_crc32_next #(
        .W (8)
    ) u_crc (
        .state (crc ),
        .data  (d   ),
        .next  (next)
    );

    always_ff @ (posedge clk) begin
        if (start) begin
            crc <= gw_crc32_pkg::INIT;
        end else if (advance) begin
            crc <= next;
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            push <= 0;
        end else begin
            push <= (emit & (closing | lane_last)) | (stop & ~there[4]) | broken;
        end
    end

    always_ff @ (posedge clk) begin
        why <= ((broken) ? (
            mac_reason::ERROR
        ) : (huge) ? (
            mac_reason::OVERSIZE
        ) : (~(full & there[4])) ? (
            mac_reason::RUNT
        ) : (fault) ? (
            mac_reason::ERROR
        ) : (crc != gw_crc32_pkg::RESIDUE) ? (
            mac_reason::FCS
        ) : (
            mac_reason::GOOD
        ));
    end

    // The byte's lane is the low part of the count.
    if (B == 1) begin :g_byte
        always_comb lane_last = 1;
        always_ff @ (posedge clk) begin
            if (emit) begin
                data <= line[4];
            end
            code <= {closing, ~closing & ~emit};
        end
    end else begin :g_byte
        localparam int unsigned L         = $clog2(B);
        always_comb lane_last = count[L - 1:0] == '1;
        for (genvar i = 0; i < B; i++) begin :g_lane
            always_ff @ (posedge clk) begin
                if (emit & (count[L - 1:0] == L'(i))) begin
                    data[i * 8+:8] <= line[4];
                end
            end
        end
        logic [(C - 1)-1:0] low;
        if (C - 1 == L) begin :g_low
            always_comb low = count[L - 1:0];
        end else begin :g_low
            always_comb low = {1'b0, count[L - 1:0]};
        end
        always_ff @ (posedge clk) begin
            code[C - 1]   <= closing;
            code[C - 2:0] <= ((closing) ? ( low ) : (emit) ? ( 0 ) : ( 1 ));
        end
    end
endmodule

/// Receive, from the PHY's domain to the system's: FIFO, overflow, and the client's side.
///
/// When the FIFO is full the frame that comes in is lost whole: what the client has seen of it is
/// ended with `terr`, and the following frames are lost until there is room.
module mac_rx_port #(
    /// Width of `data`, and of `frames`, in bits.
    parameter int unsigned W = 32,
    /// Words in the FIFO.
    parameter int unsigned DEPTH = 16,
    /// A register behind the FIFO.
    parameter bit OUT_REG = 1'b0,
    /// Width of the code.
    parameter int unsigned C = ((W < 32) ? ( 2 ) : ( $clog2(W / 8) + 1 ))
) (
    input  var logic               clk_phy,
    input  var logic               rst_phy,
    input  var logic               push   ,
    input  var logic [W-1:0]       data   ,
    input  var logic [C-1:0]       code   ,
    input  var logic [3-1:0]       why    ,
    input  var logic               clk_sys,
    input  var logic               rst_sys,
    output var logic [W-1:0]       o_data ,
    output var logic [(W / 8)-1:0] o_keep ,
    output var logic               o_last ,
    output var logic               o_err  ,
    output var logic               o_valid,
    input  var logic               o_ready,
    /// One pulse per frame that ended, with its reason; frames lost in the FIFO excepted.
    output var logic         ended,
    output var logic [3-1:0] cause,
    /// One pulse per frame lost in the FIFO.
    output var logic lost
);
    logic                   ready;
    logic                   skip ; // the rest of a frame that is already lost
    logic                   owed ; // the FIFO still needs the end of a lost frame
    logic                   open ; // the last word in the FIFO is not the last of a frame
    logic                   last ; always_comb last  = code[C - 1] | code[0];
    logic                   fresh; always_comb fresh = push & ~skip;
    logic                   miss ; always_comb miss  = fresh & (owed | ~ready);
    logic                   pay  ; always_comb pay   = owed & open;
    logic [(3 + C + W)-1:0] i_all; always_comb i_all = ((owed) ? (
        {mac_reason::OVERFLOW, 1'b1, {C - 1{1'b0}}, data}
    ) : (
        {why, code, data}
    ));
    logic [(3 + C + W)-1:0] o_all;
    logic                   some ;

    always_ff @ (posedge clk_phy) begin
        if (rst_phy) begin
            skip <= 0;
            owed <= 0;
            open <= 0;
        end else begin
            if (push & last) begin
                skip <= 0;
            end else if (miss) begin
                skip <= 1;
            end
            if (miss) begin
                owed <= 1;
            end else if (ready) begin
                owed <= 0;
            end
            if (ready & (owed | fresh)) begin
                open <= ~owed & ~last;
            end
        end
    end

    logic [C-1:0] o_code; always_comb o_code = o_all[W + C - 1:W];
    logic         empty ; always_comb empty  = ~o_code[C - 1] & o_code[0];

    gw_fifo_async #(
        .W       (3 + C + W),
        .DEPTH   (DEPTH    ),
        .OUT_REG (OUT_REG  )
    ) u_fifo (
        .clk_i   (clk_phy              ),
        .rst_i   (rst_phy              ),
        .i_data  (i_all                ),
        .i_valid (pay | (fresh & ~owed)),
        .i_ready (ready                ),
        .clk_o   (clk_sys              ),
        .rst_o   (rst_sys              ),
        .o_data  (o_all                ),
        .o_valid (some                 ),
        .o_ready (o_ready | empty      )
    );

    gw_event_cdc u_lost (
        .clk_i (clk_phy),
        .rst_i (rst_phy),
        .i     (miss   ),
        .clk_o (clk_sys),
        .rst_o (rst_sys),
        .o     (lost   )
    );

    gw_keep_decode #(
        .B (W / 8)
    ) u_decode (
        .code (o_code),
        .keep (o_keep),
        .last (o_last)
    );

    always_comb cause   = o_all[W + C + 2:W + C];
    always_comb o_data  = o_all[W - 1:0];
    always_comb o_err   = cause != mac_reason::GOOD;
    always_comb o_valid = some & ~empty;
    always_comb ended   = some & o_last & (o_ready | empty) & (cause != mac_reason::OVERFLOW);
endmodule

/// Receive, stream side: checks the length of whole frames without FCS, passes on `rx_terr`, cuts
/// what is too long. Takes a beat on every cycle.
module mac_rx_stream #(
    /// Width in bits.
    parameter int unsigned W = 64,
    /// Longest frame in bytes, without FCS.
    parameter int unsigned MAX = 1518,
    /// Width of the code.
    parameter int unsigned C = ((W < 32) ? ( 2 ) : ( $clog2(W / 8) + 1 ))
) (
    input  var logic               clk  ,
    input  var logic               rst  ,
    input  var logic [W-1:0]       tdata,
    input  var logic [(W / 8)-1:0] tkeep,
    input  var logic               tlast,
    input  var logic               terr ,
    input  var logic               valid,
    output var logic               push ,
    output var logic [W-1:0]       data ,
    output var logic [C-1:0]       code ,
    output var logic [3-1:0]       why  
);
    localparam int unsigned B        = W / 8;
    localparam int unsigned N        = $clog2(MAX / B + 2);
    localparam int unsigned MAX_BEAT = MAX / B; // the beat with the first byte too many
    localparam int unsigned MIN_BEAT = 59 / B; // the beat with byte 60

    logic [N-1:0] beat  ; // index of the beat in its frame
    logic         short ; // before MIN_BEAT
    logic         cut   ; // the rest of a frame that is too long
    logic [C-1:0] i_code;
    logic         huge  ; always_comb huge   = ~cut & (beat == N'(MAX_BEAT)) & tkeep[MAX % B];
    logic         runt  ; always_comb runt   = short | ((beat == N'(MIN_BEAT)) & ~tkeep[59 % B]);

    gw_keep_encode #(
        .B (B)
    ) u_encode (
        .keep (tkeep       ),
        .last (tlast | huge),
        .code (i_code      )
    );

    always_ff @ (posedge clk) begin
        if (rst) begin
            beat  <= 0;
            short <= MIN_BEAT != 0;
            cut   <= 0;
            push  <= 0;
        end else begin
            push <= valid & ~cut;
            if (valid) begin
                if (tlast) begin
                    beat  <= 0;
                    short <= MIN_BEAT != 0;
                    cut   <= 0;
                end else begin
                    if (~cut & ~huge) begin
                        beat <= beat + 1;
                    end
                    if (beat + 1 == N'(MIN_BEAT)) begin
                        short <= 0;
                    end
                    if (huge) begin
                        cut <= 1;
                    end
                end
            end
        end
    end

    always_ff @ (posedge clk) begin
        data <= tdata;
        code <= i_code;
        why  <= ((huge) ? (
            mac_reason::OVERSIZE
        ) : (runt) ? (
            mac_reason::RUNT
        ) : (terr) ? (
            mac_reason::FCS
        ) : (
            mac_reason::GOOD
        ));
    end
endmodule

/// Transmit, words to bytes: preamble, padding to 60 bytes, FCS, a gap of 12 bytes. Back to back a
/// frame of L bytes takes max(L, 60) + 24 cycles with `ce`. A started frame never pauses: when its
/// next word is not there it ends with a wrong FCS, as does a frame with `err`.
module mac_tx_bytes #(
    /// Width of a word in bits.
    parameter int unsigned W = 32,
    /// Width of the code.
    parameter int unsigned C = ((W < 32) ? ( 2 ) : ( $clog2(W / 8) + 1 ))
) (
    input var logic clk,
    input var logic rst,
    /// The byte clock's enable.
    input  var logic         ce   ,
    input  var logic [W-1:0] data ,
    input  var logic [C-1:0] code ,
    input  var logic         err  ,
    input  var logic         valid,
    output var logic         ready,
    output var logic         en   ,
    output var logic [8-1:0] d    ,
    /// One pulse per frame whose next word was not there.
    output var logic underrun
);
    localparam int unsigned B = W / 8;

    typedef enum logic [3-1:0] {
        State_gap,
        State_preamble,
        State_body,
        State_pad,
        State_fcs
    } State;

    State         state ;
    logic [4-1:0] count ; // cycles in `gap`, `preamble`, `fcs`
    logic [6-1:0] size  ; // bytes of the frame, stops at 59
    logic         bad   ;
    logic         drain ; // the rest of a frame that ran dry is thrown away
    logic [8-1:0] octet ; // the byte at the front of `data`
    logic         ends  ; // it is the last of the frame
    logic         whole ; // it is the last of the word
    logic         body  ; always_comb body   = state == State_body;
    logic         enough; always_comb enough = size == 59;
    logic         dry   ; always_comb dry    = body & ~valid;

    always_comb ready    = ce & (drain | (body & whole));
    always_comb underrun = ce & dry;

    if (B == 1) begin :g_byte
        always_comb octet = data;
        always_comb ends  = code[C - 1];
        always_comb whole = 1;
    end else begin :g_byte
        localparam int unsigned         L     = $clog2(B);
        logic        [L-1:0] lane ;
        always_comb octet = data[lane * 8+:8];
        always_comb ends  = code[C - 1] & (lane == code[L - 1:0]);
        always_comb whole = ends | (lane == '1);

        always_ff @ (posedge clk) begin
            if (ce) begin
                lane <= ((body) ? ( lane + 1 ) : ( 0 ));
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            state <= State_gap;
            count <= 0;
            drain <= 0;
        end else if (ce) begin
            count <= (((state == State_gap) & (count == 11)) ? ( count ) : ( count + 1 ));
            if (drain & valid & code[C - 1]) begin
                drain <= 0;
            end
            case (state)
                State_gap: begin
                    if ((count == 11) & valid & ~drain) begin
                        state <= State_preamble;
                        count <= 0;
                    end
                end
                State_preamble: begin
                    if (count == 7) begin
                        state <= State_body;
                    end
                end
                State_body: begin
                    count <= 0;
                    if (~valid) begin
                        drain <= 1;
                        state <= State_fcs;
                    end else if (ends) begin
                        state <= ((enough) ? ( State_fcs ) : ( State_pad ));
                    end
                end
                State_pad: begin
                    count <= 0;
                    if (enough) begin
                        state <= State_fcs;
                    end
                end
                default: begin
                    if (count == 3) begin
                        state <= State_gap;
                        count <= 0;
                    end
                end
            endcase
        end
    end

    always_ff @ (posedge clk) begin
        if (ce) begin
            if (state == State_preamble) begin
                size <= 0;
            end else if (~enough) begin
                size <= size + 1;
            end
            if (body) begin
                bad <= ~valid | err;
            end
        end
    end

    // One cycle later: the byte, and what it is.
    logic [8-1:0] b_octet;
    logic         b_en   ;
    logic         b_start;
    logic         b_fcs  ;
    logic         b_bad  ;

    always_ff @ (posedge clk) begin
        if (ce) begin
            b_octet <= (((state) ==? (State_preamble)) ? (
                ((count == 7) ? ( 8'hD5 ) : ( 8'h55 ))
            ) : ((state) ==? (State_body)) ? (
                octet
            ) : (
                0
            ));
            b_start <= state == State_preamble;
            b_fcs   <= state == State_fcs;
            b_bad   <= bad;
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            b_en <= 0;
        end else if (ce) begin
            b_en <= state != State_gap;
        end
    end

    // During the FCS the bytes that go in cancel those that come out, so that the state shifts.
    logic [32-1:0] crc ;
    logic [32-1:0] next;
    logic [8-1:0]  feed; always_comb feed = ((b_fcs) ? ( crc[7:0] ) : ( b_octet ));

    gw_crc32_next #(
        .W (8)
    ) u_crc (
        .state (crc ),
        .data  (feed),
        .next  (next)
    );

    always_ff @ (posedge clk) begin
        if (ce) begin
            crc <= ((b_start) ? ( gw_crc32_pkg::INIT ) : ( next ));
            d   <= ((b_fcs) ? ( crc[7:0] ^ {8{~b_bad}} ) : ( b_octet ));
        end
    end

    always_ff @ (posedge clk) begin
        if (rst) begin
            en <= 0;
        end else if (ce) begin
            en <= b_en;
        end
    end
endmodule

/// Transmit, from the client's side in the system's domain to the PHY's: refusals, answers, FIFO.
///
/// A frame without bytes is refused (status 2); while `shut` is 1 frames are taken and thrown away
/// (status 3), so that the client is never blocked.
module mac_tx_port #(
    /// Width of `data`, and of `frames`, in bits.
    parameter int unsigned W = 32,
    /// Words in the FIFO.
    parameter int unsigned DEPTH = 16,
    /// A register behind the FIFO.
    parameter bit OUT_REG = 1'b0,
    /// Width of the code.
    parameter int unsigned C = ((W < 32) ? ( 2 ) : ( $clog2(W / 8) + 1 ))
) (
    input  var logic               clk_sys,
    input  var logic               rst_sys,
    input  var logic [W-1:0]       i_data ,
    input  var logic [(W / 8)-1:0] i_keep ,
    input  var logic               i_last ,
    input  var logic               i_err  ,
    input  var logic               i_valid,
    output var logic               i_ready,
    input  var logic               shut   ,
    output var logic               done   ,
    output var logic [2-1:0]       status ,
    input  var logic               clk_phy,
    input  var logic               rst_phy,
    output var logic [W-1:0]       data   ,
    output var logic [C-1:0]       code   ,
    /// Counts with the last word: the frame must not be taken for good.
    output var logic err  ,
    output var logic valid,
    input  var logic ready
);
    logic [C-1:0]           i_code ;
    logic [(1 + C + W)-1:0] o_all  ;
    logic                   room   ;
    logic                   running; // between the first word of a frame and its last
    logic                   drop   ; // this frame is thrown away
    logic                   refuse ; always_comb refuse  = ((running) ? ( drop ) : ( shut ));
    logic                   take   ; always_comb take    = i_valid & i_ready;
    logic                   empty  ; always_comb empty   = ~i_keep[0];

    always_comb i_ready = room | drop;

    always_ff @ (posedge clk_sys) begin
        if (rst_sys) begin
            running <= 0;
            drop    <= 0;
            done    <= 0;
        end else begin
            if (take) begin
                running <= ~i_last;
                drop    <= refuse & ~i_last;
            end
            done <= take & i_last;
        end
    end

    always_ff @ (posedge clk_sys) begin
        status <= ((refuse) ? ( 3 ) : (i_err | empty) ? ( 2 ) : ( 0 ));
    end

    gw_keep_encode #(
        .B (W / 8)
    ) u_encode (
        .keep (i_keep),
        .last (i_last),
        .code (i_code)
    );

    gw_fifo_async #(
        .W       (1 + C + W),
        .DEPTH   (DEPTH    ),
        .OUT_REG (OUT_REG  )
    ) u_fifo (
        .clk_i   (clk_sys                   ),
        .rst_i   (rst_sys                   ),
        .i_data  ({i_err, i_code, i_data}   ),
        .i_valid (i_valid & ~refuse & ~empty),
        .i_ready (room                      ),
        .clk_o   (clk_phy                   ),
        .rst_o   (rst_phy                   ),
        .o_data  (o_all                     ),
        .o_valid (valid                     ),
        .o_ready (ready                     )
    );

    always_comb data = o_all[W - 1:0];
    always_comb code = o_all[W + C - 1:W];
    always_comb err  = o_all[W + C];
endmodule

/// Transmit, stream side: pads to 60 bytes. A frame starts when two beats of it are there, or all of
/// it; then it gives a beat on every cycle in which `tready` is 1. When a beat is not there the frame
/// ends with `terr`.
module mac_tx_stream #(
    /// Width in bits.
    parameter int unsigned W = 64,
    /// Width of the code.
    parameter int unsigned C = ((W < 32) ? ( 2 ) : ( $clog2(W / 8) + 1 ))
) (
    input  var logic               clk    ,
    input  var logic               rst    ,
    input  var logic [W-1:0]       data   ,
    input  var logic [C-1:0]       code   ,
    input  var logic               err    ,
    input  var logic               valid  ,
    output var logic               ready  ,
    output var logic [W-1:0]       tdata  ,
    output var logic [(W / 8)-1:0] tkeep  ,
    output var logic               tlast  ,
    output var logic               terr   ,
    output var logic               o_valid,
    input  var logic               o_ready,
    /// One pulse per frame whose next beat was not there.
    output var logic underrun
);
    localparam int unsigned B        = W / 8;
    localparam int unsigned MIN_BEAT = 59 / B; // the beat with byte 60
    localparam int unsigned N        = $clog2(MIN_BEAT + 2);

    // The head of the queue; the beat behind it is the FIFO's.
    logic [W-1:0] h_data ;
    logic [C-1:0] h_code ;
    logic         h_err  ;
    logic         h_valid;
    logic         h_take ;

    always_comb ready = ~h_valid | h_take;

    always_ff @ (posedge clk) begin
        if (rst) begin
            h_valid <= 0;
        end else if (ready) begin
            h_valid <= valid;
        end
    end

    always_ff @ (posedge clk) begin
        if (ready) begin
            h_data <= data;
            h_code <= code;
            h_err  <= err;
        end
    end

    logic [B-1:0] keep;
    logic         last;

    gw_keep_decode #(
        .B (B)
    ) u_decode (
        .code (h_code),
        .keep (keep  ),
        .last (last  )
    );

    logic         running; // a frame has started
    logic         pad    ; // its beats are at an end, padding follows
    logic         drain  ; // it ran dry, the rest is thrown away
    logic         fault  ;
    logic [N-1:0] beat   ;
    logic         free   ; always_comb free    = ~o_valid | o_ready;
    logic         at     ; always_comb at      = beat == N'(MIN_BEAT); // this beat has byte 60
    logic         past   ; always_comb past    = beat == N'((MIN_BEAT + 1)); // an earlier one had it
    logic         long   ; always_comb long    = at | past;
    logic         go     ; always_comb go      = ~drain & (running | (h_valid & (last | valid)));
    logic         dry    ; always_comb dry     = running & ~pad & ~h_valid & ~drain;
    logic         give   ; always_comb give    = free & (go | pad);
    logic         closing; always_comb closing = long & (pad | last | dry);

    // `dry` gives one beat that ends the frame, at once where it is long enough.
    always_comb h_take   = drain | (give & ~pad & ~dry);
    always_comb underrun = give & dry;

    always_ff @ (posedge clk) begin
        if (rst) begin
            running <= 0;
            pad     <= 0;
            drain   <= 0;
            beat    <= 0;
            o_valid <= 0;
        end else begin
            if (free) begin
                o_valid <= give;
            end
            if (give) begin
                running <= ~closing;
                pad     <= ~closing & (pad | last | dry);
                if (closing) begin
                    beat <= 0;
                end else if (~past) begin
                    beat <= beat + 1;
                end
            end
            if (give & dry) begin
                drain <= 1;
            end else if (drain & h_valid & last) begin
                drain <= 0;
            end
        end
    end

    always_ff @ (posedge clk) begin
        if (give) begin
            fault <= ((pad) ? ( fault ) : ( dry | h_err ));
        end
        if (free) begin
            tlast <= closing;
            terr  <= ((pad) ? ( fault ) : ( dry | (h_err & last) ));
        end
    end

    for (genvar i = 0; i < B; i++) begin :g_byte
        always_ff @ (posedge clk) begin
            if (free) begin
                tdata[i * 8+:8] <= h_data[i * 8+:8] & {8{keep[i] & ~pad}};
                // Up to byte 60 padding fills the beat; behind it the frame's own bytes count.
                tkeep[i] <= (((past) ? ( dry & (i == 0) ) : ( ~at | (i <= 59 % B) ))) | (keep[i] & ~pad & ~dry);
            end
        end
    end
endmodule
