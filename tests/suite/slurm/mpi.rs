//! Programs of MPI on tasks that Slurm starts, in sandboxes and outside of them.

use super::cluster::Cluster;
use crate::lab::{Lab, files};
use crate::needs::needs;

/// Each rank sends a message to the next one. The first one writes how many there are, the sum of what all have received, and whether
/// messages were copied once, from the memory of one process to that of another: Open MPI asks the kernel for it by a function of the C
/// library, which is counted here.
const RING: &str = r#"#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long copies;

ssize_t process_vm_readv(pid_t pid, const struct iovec *own, unsigned long owns, const struct iovec *other,
                         unsigned long others, unsigned long flags) {
    long copied = syscall(SYS_process_vm_readv, pid, own, owns, other, others, flags);
    copies += copied > 0;
    return copied;
}

int main(int argc, char **argv) {
    int rank, ranks, size = 1 << 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *sent = malloc(size), *received = malloc(size);
    memset(sent, rank + 1, size);
    for (int round = 0; round < 10; round++)
        MPI_Sendrecv(sent, size, MPI_CHAR, (rank + 1) % ranks, 0, received, size, MPI_CHAR, (rank + ranks - 1) % ranks, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long own[2] = {0, copies}, all[2];
    for (int i = 0; i < size; i++) own[0] += received[i];
    MPI_Reduce(own, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *out = fopen(argv[2], "w");
        fprintf(out, "%d ranks, sum %ld, %s\n", ranks, all[0], all[1] ? "copied once" : "copied twice");
        fclose(out);
    }
    return MPI_Finalize();
}
"#;

#[test]
fn ranks_of_a_host_copy_messages_once_isolated_or_not() {
    needs(&["mpicc"]);
    let Some(cluster) = Cluster::shared() else { return };
    let results = [true, false].map(|isolated| {
        let lab = Lab::task("Inputs: 'x'\n\n(ring (compile x))")
            .data("x", RING)
            .computation(
                "compile",
                "source",
                "program",
                r#"cp "$1" ring.c && mpicc -rdynamic -o "$2" ring.c"#,
            )
            .computation("ring", "program", "told", r#"exec "$1" "$1" "$2""#)
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
    // 2^20 bytes from each, of which one is 1, and the other 2.
    assert_eq!(results, ["2 ranks, sum 3145728, copied once\n"; 2]);
}
