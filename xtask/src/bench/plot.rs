//! Plots of the records, as SVG: throughput by path MTU, latency by size.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A line through points; x counts the columns of the plot.
struct Series {
    name: String,
    colour: &'static str,
    dashed: bool,
    points: Vec<(usize, f64)>,
}

/// (x, y) of each line.
type Lines = BTreeMap<String, Vec<(u64, f64)>>;

/// What a plot shows.
struct Plot {
    title: &'static str,
    across: &'static str,
    columns: Vec<u64>,
    from: f64,
    to: f64,
    step: f64,
    unit: &'static str,
    /// What is wanted, and how it is called.
    goals: Vec<(f64, &'static str)>,
    series: Vec<Series>,
}

const WIDTH: f64 = 840.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 240.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 56.0;
/// Blue, orange, green: told apart by the colour-blind, too. Two lines, one of them dashed, have the same: a name with either memory.
const COLOURS: [&str; 3] = ["#0072b2", "#e08a00", "#009e73"];

/// (file name, SVG) of each plot.
pub fn all(records: &[Value]) -> Vec<(&'static str, String)> {
    vec![("rdma-throughput.svg", draw(&throughput(records))), ("rdma-latency.svg", draw(&latency(records)))]
}

/// Values of `y` by `x`, for each (rate, memory, role, operation) that `wanted` takes.
fn collect(records: &[Value], wanted: impl Fn(&Value) -> bool, x: &str, y: &str, name: impl Fn(&Value) -> String) -> (Vec<u64>, Lines) {
    let (mut columns, mut found) = (Vec::new(), Lines::new());
    for record in records.iter().filter(|record| wanted(record)) {
        let (Some(at), Some(value)) = (record[x].as_u64(), record[y].as_f64()) else { continue };
        columns.push(at);
        found.entry(name(record)).or_default().push((at, value));
    }
    columns.sort_unstable();
    columns.dedup();
    (columns, found)
}

fn series(columns: &[u64], found: Lines) -> Vec<Series> {
    let place = |at: u64| columns.iter().position(|column| *column == at).unwrap_or(0);
    let line = |(n, (name, points)): (usize, (String, Vec<(u64, f64)>))| Series {
        name,
        colour: COLOURS[n / 2 % COLOURS.len()],
        dashed: n % 2 == 1,
        points: points.into_iter().map(|(at, value)| (place(at), value)).collect(),
    };
    found.into_iter().enumerate().map(line).collect()
}

fn text(record: &Value, key: &str) -> String {
    record[key].as_str().unwrap_or_default().to_owned()
}

fn memory(record: &Value) -> &'static str {
    match record["memory"].as_str() {
        Some("sdram") => "SDRAM",
        Some("axi") => "AXI4 memory",
        _ => "block RAM",
    }
}

/// The worst of WRITE and READ for each role, 1 Gb/s.
fn throughput(records: &[Value]) -> Plot {
    let wanted = |record: &Value| {
        record["test"] == "throughput" && record["size"] == 65536 && record["link_gbps"].as_f64() == Some(1.0) && record["op"] != "SEND"
    };
    let name = |record: &Value| {
        let who = if record["op"] == "WRITE and READ" { "both directions".to_owned() } else { text(record, "role") };
        format!("{who}, {}", memory(record))
    };
    let (columns, mut found) = collect(records, wanted, "pmtu", "share", name);
    for points in found.values_mut() {
        let mut worst = BTreeMap::<u64, f64>::new();
        for (at, share) in points.drain(..) {
            let least = worst.entry(at).or_insert(f64::MAX);
            *least = least.min(share * 100.0);
        }
        points.extend(worst);
    }
    let least = found.values().flatten().map(|point| point.1).fold(99.5, f64::min);
    let from = (least * 4.0 - 0.4).floor() / 4.0;
    Plot {
        title: "Share of what 1 Gb/s allows, 64 KiB messages, the lower of WRITE and READ",
        across: "path MTU in bytes",
        from,
        to: 100.0,
        step: if 100.0 - from > 2.0 { 1.0 } else { 0.25 },
        unit: " %",
        goals: vec![(99.5, "wanted: 99.5 %")],
        series: series(&columns, found),
        columns,
    }
}

fn latency(records: &[Value]) -> Plot {
    let wanted = |record: &Value| record["test"] == "latency" && record["link_gbps"].as_f64() == Some(1.0);
    let name = |record: &Value| {
        let what = if record["op"] == "READ" { "READ to response" } else { "WRITE to ACK" };
        format!("{what}, {}", memory(record))
    };
    let (columns, found) = collect(records, wanted, "size", "latency_ns", name);
    let most = found.values().flatten().map(|point| point.1).fold(900.0, f64::max);
    Plot {
        title: "Request's last byte in to the answer's first byte out, 1 Gb/s at 62.5 MHz",
        across: "message size in bytes",
        from: 0.0,
        to: (most / 100.0).ceil() * 100.0,
        step: 100.0,
        unit: " ns",
        goals: vec![(600.0, "wanted of WRITE: 600 ns"), (800.0, "wanted of READ: 800 ns")],
        series: series(&columns, found),
        columns,
    }
}

fn draw(plot: &Plot) -> String {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let x = |column: usize| LEFT + (column as f64 + 0.5) * (right - LEFT) / plot.columns.len().max(1) as f64;
    let y = |value: f64| bottom - (value - plot.from) / (plot.to - plot.from) * (bottom - TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#333\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"14\" font-weight=\"600\">{}</text>\n",
        plot.title
    );
    let mut line = |text: String| {
        let _ = writeln!(svg, "{text}");
    };
    let mut value = (plot.from / plot.step).ceil() * plot.step;
    while value <= plot.to + 1e-9 {
        line(format!("<path d=\"M{LEFT} {0:.1}H{right}\" stroke=\"#e4e4e4\"/>", y(value)));
        line(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}{}</text>", LEFT - 8.0, y(value) + 4.0, plot.unit));
        value += plot.step;
    }
    for (n, column) in plot.columns.iter().enumerate() {
        line(format!("<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{column}</text>", x(n), bottom + 20.0));
    }
    line(format!("<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>", (LEFT + right) / 2.0, bottom + 42.0, plot.across));
    line(format!("<path d=\"M{LEFT} {bottom}H{right}\" stroke=\"#888\"/>"));
    for (goal, name) in &plot.goals {
        line(format!("<path d=\"M{LEFT} {0:.1}H{right}\" stroke=\"#b00020\" stroke-dasharray=\"2 4\"/>", y(*goal)));
        line(format!("<text x=\"{}\" y=\"{:.1}\" fill=\"#b00020\">{name}</text>", right + 10.0, y(*goal) + 4.0));
    }
    // Beside the plot, below the names of the goals or above them, wherever there is room.
    let legend = if plot.goals.iter().any(|(goal, _)| y(*goal) < (TOP + bottom) / 2.0) {
        bottom - 20.0 * plot.series.len() as f64
    } else {
        TOP + 10.0
    };
    for (n, series) in plot.series.iter().enumerate() {
        let dash = if series.dashed { " stroke-dasharray=\"7 4\"" } else { "" };
        let points = series.points.iter().map(|(column, value)| format!("{:.1},{:.1}", x(*column), y(*value))).collect::<Vec<_>>();
        line(format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash}/>", points.join(" "), series.colour));
        for (column, value) in &series.points {
            line(format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{}\"/>", x(*column), y(*value), series.colour));
        }
        let at = legend + 20.0 * n as f64;
        line(format!("<path d=\"M{} {at:.1}h24\" stroke=\"{}\" stroke-width=\"2\"{dash}/>", right + 10.0, series.colour));
        line(format!("<text x=\"{}\" y=\"{:.1}\">{}</text>", right + 40.0, at + 4.0, series.name));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_point_is_drawn_inside() {
        let record = |pmtu: u32, share: f64| json!({ "test": "throughput", "role": "responder", "op": "READ", "pmtu": pmtu, "size": 65536, "link_gbps": 1.0, "memory": "bram", "share": share });
        let svg = draw(&throughput(&[record(256, 0.9999), record(1024, 0.97)]));
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        for part in svg.split("cy=\"").skip(1) {
            let y: f64 = part.split('"').next().unwrap().parse().unwrap();
            assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{y}");
        }
    }
}
