package bench;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads all records of a topic several times, and prints the nanoseconds of each time. */
public final class Consume {
    public static void main(String[] args) {
        if (args.length != 5) {
            throw new IllegalArgumentException("usage: Consume BOOTSTRAP_SERVERS TOPIC PARTITIONS RECORDS ROUNDS");
        }
        List<TopicPartition> partitions = new ArrayList<>();
        for (int partition = 0; partition < Integer.parseInt(args[2]); partition++) {
            partitions.add(new TopicPartition(args[1], partition));
        }
        long expected = Long.parseLong(args[3]);
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0],
            "max.poll.records", 10_000,
            "max.partition.fetch.bytes", 4 << 20,
            "fetch.max.bytes", 16 << 20,
            "receive.buffer.bytes", 1 << 20);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.assign(partitions);
            for (int round = Integer.parseInt(args[4]); round > 0; round--) {
                consumer.seekToBeginning(partitions);
                long start = System.nanoTime(), records = 0, touched = 0;
                while (records < expected) {
                    for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofSeconds(10))) {
                        records++;
                        touched += one.value()[0];
                    }
                }
                System.out.println(System.nanoTime() - start);
                if (records != expected || touched == 0) {
                    throw new IllegalStateException(records + " records instead of " + expected);
                }
            }
        }
    }

    private Consume() {
    }
}
