//! A Slurm that is asked by commands, as if it were unknown.

use crate::lab::Lab;
use crate::program::{Ran, Running};
use crate::slurm::{Cluster, wait_for};

#[test]
fn an_unknown_version_of_slurm_works_by_commands() {
    let Some(cluster) = Cluster::shared() else { return };
    let [here, there] = [(); 2].map(|()| Lab::task(super::SUM).with_storage().commit());
    let expected = here.ce_run(&[]).exit(0);
    let there = there.commanding(
        "sbatch --parsable --no-requeue --job-name={name} --output={log} --cpus-per-task={cpus} --time={minutes} {script}",
        "squeue --noheader --me --format=%i",
        "scancel {id}",
    );
    let mut run = there.commanded();
    let run = Running::start(run.env("SLURM_CONF", &cluster.conf));
    let ran = Ran::new(&there, run.output()).exit(0);
    assert_eq!((ran.stdout, ran.stderr), (expected.stdout, expected.stderr));
    wait_for("tidy storage", || there.is_tidy().then_some(()));
    assert!(there.results() == here.results());
    assert_eq!(there.called(), here.called());
}
