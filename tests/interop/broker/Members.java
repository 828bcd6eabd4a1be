import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Three consumers of one group: the others join the first one, and then one of them leaves. Arguments: bootstrap servers,
 * group protocol, group, topic, number of its partitions, number of its records, pattern to subscribe with by RE2, if any.
 * Prints how many partitions each member had with three and with two members, and then "partition record" for each
 * record, in the order of partitions and offsets.
 */
public class Members {
    private static final Duration WAIT = Duration.ofMillis(50);

    private final TreeMap<String, String> records = new TreeMap<>();
    private int count;

    public static void main(String[] arguments) {
        new Members().run(arguments);
    }

    private void run(String[] arguments) {
        var members = new ArrayList<KafkaConsumer<byte[], byte[]>>();
        int partitions = Integer.parseInt(arguments[4]);
        try {
            for (int number = 1; number <= 3; number++) {
                members.add(member(arguments));
                balance(members, partitions);
            }
            members.remove(1).close();
            balance(members, partitions);
            long deadline = deadline();
            while (count < Integer.parseInt(arguments[5])) poll(members, deadline);
            // Nothing comes twice.
            for (int times = 0; times < 20; times++) poll(members, deadline);
        } finally {
            members.forEach(KafkaConsumer::close);
        }
        System.out.println("read\t" + count);
        records.values().forEach(System.out::print);
    }

    private static KafkaConsumer<byte[], byte[]> member(String[] arguments) {
        var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.protocol", arguments[1]);
        settings.put("group.id", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("fetch.max.wait.ms", "50");
        settings.put("max.poll.records", "3");
        // What is read is committed before partitions are given up.
        settings.put("enable.auto.commit", "true");
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        if (arguments.length > 6) consumer.subscribe(new org.apache.kafka.clients.consumer.SubscriptionPattern(arguments[6]));
        else consumer.subscribe(List.of(arguments[3]));
        return consumer;
    }

    private void balance(List<KafkaConsumer<byte[], byte[]>> members, int partitions) {
        long deadline = deadline();
        while (!members.stream().allMatch(member -> member.assignment().size() == partitions / members.size()))
            poll(members, deadline);
        System.out.println("members\t" + members.size());
    }

    private void poll(List<KafkaConsumer<byte[], byte[]>> members, long deadline) {
        if (System.nanoTime() > deadline) throw new IllegalStateException("stuck with " + members.size() + " members");
        for (var member : members) {
            for (ConsumerRecord<byte[], byte[]> record : member.poll(WAIT)) {
                count++;
                records.put(String.format("%05d %020d", record.partition(), record.offset()),
                    record.partition() + "\t" + Client.line(record));
            }
        }
    }

    private static long deadline() {
        return System.nanoTime() + Duration.ofSeconds(60).toNanos();
    }
}
