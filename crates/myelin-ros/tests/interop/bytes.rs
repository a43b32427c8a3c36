//! Messages written here equal those of CycloneDDS's generated serialiser, byte for byte, and those
//! of Fast CDR except for padding at the end.

use myelin_ros::cdr::{self, Cdr};

use crate::pattern::{Pattern, Pose};
use crate::peer::Middleware;

#[test]
fn are_those_of_cyclonedds() {
    compare(|kind, n, ours| {
        let theirs = Middleware::CycloneDds.bytes(kind, n)?;
        assert!(ours == theirs, "{kind} {n} differs at {}", difference(&ours, &theirs));
        Some(())
    });
}

#[test]
fn are_those_of_fast_cdr() {
    compare(|kind, n, mut ours| {
        let theirs = Middleware::FastDds.bytes(kind, n)?;
        ours.truncate(ours.len() - usize::from(ours[3]));
        ours[3] = 0;
        assert!(ours == theirs, "{kind} {n} differs at {}", difference(&ours, &theirs));
        Some(())
    });
}

fn compare(mut one: impl FnMut(&str, u32, Vec<u8>) -> Option<()>) {
    for n in 0..12 {
        let pattern = Pattern::new(n);
        let all = [
            ("String", written(&pattern.string())),
            ("PointCloud2", written(&pattern.cloud())),
            ("Imu", written(&pattern.imu())),
            ("Pose", written(&Pose::new(n))),
            ("Path", written(&pattern.path())),
            ("Poses", written(&Pose::several(n))),
            ("Image", written(&pattern.image())),
        ];
        // Images are large, and similar to point clouds.
        let kinds = if n < 2 { 7 } else { 6 };
        for (kind, bytes) in all.into_iter().take(kinds) {
            if one(kind, n, bytes).is_none() {
                return;
            }
        }
    }
}

fn written<'a>(message: &impl Cdr<'a>) -> Vec<u8> {
    let mut bytes = vec![0xaa; cdr::encoded_bytes(message).unwrap()];
    cdr::encode(message, &mut bytes).unwrap();
    bytes
}

/// The first byte in which they differ.
fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let at = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
    format!("{at:?}, lengths {} and {}", ours.len(), theirs.len())
}
