//! Programs of MPI on tasks that Slurm starts, in sandboxes and outside of them.

use super::cluster::Cluster;
use crate::lab::{Lab, files};
use crate::needs::needs;

/// Ranks send messages in a ring, and say how often they were copied.
const RING: &str = include_str!("../../../benches/peers/ring.c");

#[test]
fn ranks_of_a_host_copy_messages_once_isolated_or_not() {
    needs(&["mpicc"]);
    let Some(cluster) = Cluster::shared() else { return };
    let results = [true, false].map(|isolated| {
        let lab = Lab::task("Inputs: 'x'\n\n(ring (compile x))[told]")
            .data("x", RING)
            .computation(
                "compile",
                "source",
                "program",
                r#"cp "$1" ring.c && mpicc -rdynamic -o "$2" ring.c"#,
            )
            .computation("ring", "program", "told speed", r#"exec "$1" "$2" "$3" 1048576 10"#)
            .file("computations/ring/resources", "nodes 1\ntasks 2\nlauncher srun --mpi=pmix\n")
            .with_storage();
        let lab = if isolated { lab.isolated().commit() } else { lab.commit() };
        let ran = lab.ce_run_on(cluster, &[]).exit(0);
        assert!(!ran.stderr.contains("not isolated"), "{}", ran.stderr);
        let told = lab.output();
        lab.is_left_alone_by(cluster);
        let records = files(&lab.path("storage"));
        let record = records
            .iter()
            .find(|(name, _)| name.starts_with("c_ring/") && name.contains("/record/"));
        let text = String::from_utf8_lossy(record.unwrap().1).into_owned();
        assert_eq!(text.contains("\"isolation\": \"namespaces\""), isolated, "{text}");
        told
    });
    // 2^20 bytes from each: one sends 1, the other one 2.
    assert_eq!(results, ["2 ranks, sum 3145728, copied once\n"; 2]);
}
