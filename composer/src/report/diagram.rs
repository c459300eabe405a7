//! The block diagram: instances as boxes in columns from the board inwards, links as lines with kind, width and clock.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::compose::graph::{End, Graph};
use crate::compose::kinds::KindInfo;
use crate::compose::plan::{Adapter, Plan, PlannedLink, register_ports};
use crate::plugin::types::{Protocol, Role};

const BOX_WIDTH: i32 = 190;
const BOX_HEIGHT: i32 = 74;
const COLUMN_GAP: i32 = 190;
const ROW_GAP: i32 = 44;
const MARGIN: i32 = 32;

/// A box of the diagram.
struct Block {
    title: String,
    lines: Vec<String>,
    board: bool,
    column: usize,
    row: usize,
}

/// Draws the graph.
pub fn svg(graph: &Graph, plan: &Plan, kinds: &BTreeMap<String, KindInfo>) -> String {
    let (blocks, index) = layout(graph, plan);
    let columns = blocks.iter().map(|b| b.column).max().unwrap_or(0) as i32 + 1;
    let rows = blocks.iter().map(|b| b.row).max().unwrap_or(0) as i32 + 1;
    let width = 2 * MARGIN + columns * BOX_WIDTH + (columns - 1) * COLUMN_GAP;
    let height = 2 * MARGIN + rows * BOX_HEIGHT + (rows - 1) * ROW_GAP;
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"system-ui, sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut used: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for link in &plan.links {
        let edge = &graph.edges[link.edge];
        let (Some(&from), Some(&to)) = (index.get(&key(&edge.provider)), index.get(&key(&edge.client))) else { continue };
        let nth = used.entry((from, to)).or_insert(0);
        draw_link(&mut out, &blocks[from], &blocks[to], *nth as i32, link, plan, kinds.get(&edge.kind));
        *nth += 1;
    }
    draw_registers(&mut out, graph, kinds, &blocks, &index);
    for block in &blocks {
        draw_block(&mut out, block);
    }
    out.push_str("</svg>\n");
    out
}

/// The register bus: a dashed line from each master to each block.
fn draw_registers(out: &mut String, graph: &Graph, kinds: &BTreeMap<String, KindInfo>, blocks: &[Block], index: &BTreeMap<String, usize>) {
    let at = |role: Role| {
        register_ports(graph, kinds, role).into_iter().filter_map(|(node, _)| index.get(&format!("n{node}")).map(|i| &blocks[*i]))
    };
    for master in at(Role::Client) {
        for block in at(Role::Provider) {
            let ((mx, my), (bx, by)) = (corner(master), corner(block));
            let (x1, y1) = (mx + BOX_WIDTH * 3 / 4, if my > by { my } else { my + BOX_HEIGHT });
            let (x2, y2) = (bx + BOX_WIDTH / 2, if my > by { by + BOX_HEIGHT } else { by });
            let middle = (y1 + y2) / 2;
            let _ = writeln!(
                out,
                "<path d=\"M{x1} {y1} C{x1} {middle} {x2} {middle} {x2} {y2}\" fill=\"none\" stroke=\"#047857\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>"
            );
        }
    }
}

fn key(end: &End) -> String {
    match end {
        End::Port { node, .. } => format!("n{node}"),
        End::Board { resource } => format!("b{resource}"),
    }
}

/// Columns by distance from the board along provider-to-client links, rows in file order.
fn layout(graph: &Graph, plan: &Plan) -> (Vec<Block>, BTreeMap<String, usize>) {
    let mut blocks = Vec::new();
    let mut index = BTreeMap::new();
    for edge in &graph.edges {
        if let End::Board { resource } = &edge.provider
            && !index.contains_key(&key(&edge.provider))
        {
            index.insert(key(&edge.provider), blocks.len());
            blocks.push(Block {
                title: resource.clone(),
                lines: vec!["board".to_owned(), edge.kind.clone()],
                board: true,
                column: 0,
                row: 0,
            });
        }
    }
    let mut columns = vec![1; graph.nodes.len()];
    for _ in 0..graph.nodes.len() {
        for edge in &graph.edges {
            if let (End::Port { node: provider, .. }, End::Port { node: client, .. }) = (&edge.provider, &edge.client) {
                // A cycle of links stops growing with the bound of the loop.
                if columns[*client] <= columns[*provider] && columns[*provider] < graph.nodes.len() {
                    columns[*client] = columns[*provider] + 1;
                }
            }
        }
    }
    for (position, (node, column)) in graph.nodes.iter().zip(&columns).enumerate() {
        index.insert(format!("n{position}"), blocks.len());
        let width = plan.widths.get(position).copied().flatten();
        let mut lines = vec![format!("{} {}", node.about.name, node.about.version)];
        let domain = node.shape.domains.first().and_then(|d| plan.domains.get(&(position, d.name.clone())));
        let clock = domain.and_then(|c| plan.clocks.get(*c));
        let width = width.map(|w| format!("{w} bits")).unwrap_or_default();
        let clock = clock.map(|c| format!("{} MHz", c.hz as f64 / 1e6)).unwrap_or_default();
        lines.push([width, clock].iter().filter(|t| !t.is_empty()).cloned().collect::<Vec<_>>().join(" at "));
        blocks.push(Block { title: node.instance.name.value.clone(), lines, board: false, column: *column, row: 0 });
    }
    let mut next: BTreeMap<usize, usize> = BTreeMap::new();
    for block in &mut blocks {
        let row = next.entry(block.column).or_insert(0);
        block.row = *row;
        *row += 1;
    }
    (blocks, index)
}

fn corner(block: &Block) -> (i32, i32) {
    (MARGIN + block.column as i32 * (BOX_WIDTH + COLUMN_GAP), MARGIN + block.row as i32 * (BOX_HEIGHT + ROW_GAP))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn draw_block(out: &mut String, block: &Block) {
    let (x, y) = corner(block);
    let (fill, stroke) = if block.board { ("#f3f4f6", "#6b7280") } else { ("#eff6ff", "#1d4ed8") };
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"8\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.5\"/>\n\
         <text x=\"{}\" y=\"{}\" font-size=\"15\" font-weight=\"600\" fill=\"#111827\" text-anchor=\"middle\">{}</text>",
        x + BOX_WIDTH / 2,
        y + 26,
        escape(&block.title)
    );
    for (nth, line) in block.lines.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" font-size=\"12\" fill=\"#374151\" text-anchor=\"middle\">{}</text>",
            x + BOX_WIDTH / 2,
            y + 45 + 17 * nth as i32,
            escape(line)
        );
    }
}

fn draw_link(out: &mut String, from: &Block, to: &Block, nth: i32, link: &PlannedLink, plan: &Plan, kind: Option<&KindInfo>) {
    let (fx, fy) = corner(from);
    let (tx, ty) = corner(to);
    let (x1, y1) = (fx + BOX_WIDTH, fy + BOX_HEIGHT / 2 + nth * 14);
    let (x2, y2) = (tx, ty + BOX_HEIGHT / 2 + nth * 14);
    let color = match kind.map(|k| k.kind.protocol) {
        Some(Protocol::Packets) => "#1d4ed8",
        Some(Protocol::Memory) => "#b45309",
        Some(Protocol::Registers) => "#047857",
        _ => "#6b7280",
    };
    let middle = (x1 + x2) / 2;
    let _ = writeln!(
        out,
        "<path d=\"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>"
    );
    let mut label = kind.map(|k| k.kind.id.trim_start_matches("gateweave/").to_owned()).unwrap_or_default();
    if link.client.width > 0 {
        let _ = write!(label, ", {} bits", link.client.width);
    }
    let mut second = Vec::new();
    for adapter in &link.adapters {
        second.push(match adapter {
            Adapter::Crossing => {
                let name = |c: Option<usize>| c.and_then(|c| plan.clocks.get(c)).map_or("?", |c| c.name.as_str());
                format!("crossing {} to {}", name(link.provider.clock), name(link.client.clock))
            }
            Adapter::Width => format!("{} to {} bits", link.provider.width, link.client.width),
            Adapter::Store(bytes) => format!("store {bytes} bytes"),
            Adapter::Fifo(bytes) => format!("FIFO {bytes} bytes"),
        });
    }
    second.extend(link.priority.map(|p| format!("priority {p}")));
    // Beside the client's end, where two links of one provider have parted.
    let (lx, ly) = (x2 - 10, y2 - 8);
    let _ = writeln!(out, "<text x=\"{lx}\" y=\"{ly}\" font-size=\"11\" fill=\"{color}\" text-anchor=\"end\">{}</text>", escape(&label));
    if !second.is_empty() {
        let _ = writeln!(
            out,
            "<text x=\"{lx}\" y=\"{}\" font-size=\"11\" fill=\"#6b7280\" text-anchor=\"end\">{}</text>",
            y2 + 16,
            escape(&second.join(", "))
        );
    }
}
