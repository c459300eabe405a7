fn main() {
    if std::env::args().nth(1).as_deref() == Some(gateweave::plugin::hdl_check::COMMAND) {
        std::process::exit(gateweave::plugin::hdl_check::child().into());
    }
    // emit ROOT OUT [prj=FILE...]
    let a: Vec<String> = std::env::args().skip(1).collect();
    let mut s = vec![];
    for x in &a[2..] { let (p, f) = x.split_once('=').unwrap(); s.push(gateweave::hdl::Source{project:p.into(), path:f.into(), text: std::fs::read_to_string(f).unwrap()}); }
    match gateweave::hdl::compile(&a[0], &s, &[]) {
        Ok(c) => { for w in c.warnings { println!("{w:?}"); } let mut o=String::new(); for f in c.files { o += &format!("// {}\n{}", f.path, f.text);} std::fs::write(&a[1], o).unwrap(); }
        Err(m) => { for w in m { println!("{w:?}"); } std::process::exit(1) }
    }
}
