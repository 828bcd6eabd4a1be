//! Decodes small sets that stay in the cache, to see what a change costs or gains. `benches/python/run.py`
//! compares the peers on sets that do not.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use magicbyte::{Compression, Decompressor};
use magicbyte_benches::pass::pass;
use magicbyte_benches::sets::{SHAPES, set};

fn decode(criterion: &mut Criterion) {
    let mut decompressor = Decompressor::new();
    for shape in SHAPES {
        let mut group = criterion.benchmark_group(shape.name);
        for codec in Compression::ALL {
            let (mut data, expected) = set(shape, codec);
            group.throughput(Throughput::Elements(expected.records));
            group.bench_function(codec.name(), |bencher| {
                bencher.iter(|| assert_eq!(pass(&data, &mut decompressor).as_ref(), Ok(&expected)));
            });
            let last = data.len() - 1;
            data[last] ^= 1;
            assert!(pass(&data, &mut decompressor).is_err(), "a flipped byte must be found");
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = decode
}
criterion_main!(benches);
