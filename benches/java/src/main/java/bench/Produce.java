package bench;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Fills a new topic with S1 records in zstd, the same number in each partition. */
public final class Produce {
    private static final long SEED = 20_261_121;
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            throw new IllegalArgumentException("usage: Produce BOOTSTRAP_SERVERS TOPIC PARTITIONS RECORDS");
        }
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        long records = Long.parseLong(args[3]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            NewTopic created = new NewTopic(topic, Optional.of(partitions), Optional.empty());
            admin.createTopics(List.of(created)).all().get();
        }
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0],
            "compression.type", "zstd",
            "batch.size", 56 << 10,
            "linger.ms", 1000,
            "buffer.memory", 64L << 20);
        SplittableRandom random = new SplittableRandom(SEED);
        AtomicReference<Exception> failure = new AtomicReference<>();
        long timestamp = FIRST_TIMESTAMP;
        var bytes = new ByteArraySerializer();
        try (var producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (long i = 0; i < records && failure.get() == null; i++) {
                int partition = (int) (i % partitions);
                timestamp += random.nextInt(20);
                byte[] key = Shape.S1.key(random);
                byte[] value = Shape.S1.value(i, random);
                producer.send(new ProducerRecord<>(topic, partition, timestamp, key, value), (metadata, error) -> {
                    if (error != null) {
                        failure.set(error);
                    }
                });
            }
        }
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    private Produce() {
    }
}
