import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Two producers that keep running while the broker restarts: one idempotent, one transactional. A line of
 * input is a round of this number of records each, over few keys; every other transaction is aborted. The
 * answer is "." or "! message".
 */
public class Producing {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "enable.idempotence", true, "acks", "all",
            "linger.ms", 0, "compression.type", "lz4");
        var transactional = new HashMap<>(settings);
        transactional.put("transactional.id", "compacted");
        try (var plain = producer(settings); var committing = producer(transactional)) {
            committing.initTransactions();
            int number = 0;
            for (String line; (line = input.readLine()) != null; ) {
                String answer = ".";
                try {
                    for (int end = number + Integer.parseInt(line); number < end; number++) {
                        plain.send(record(arguments[1], "plain-" + number % 7, number)).get();
                        committing.beginTransaction();
                        List<Future<?>> sent = new ArrayList<>();
                        for (int i = 0; i < 3; i++) {
                            sent.add(committing.send(record(arguments[1], "txn-" + (number + i) % 5, number)));
                        }
                        for (Future<?> one : sent) {
                            one.get();
                        }
                        if (number % 2 == 0) {
                            committing.commitTransaction();
                        } else {
                            committing.abortTransaction();
                        }
                    }
                } catch (Exception e) {
                    answer = "! " + e.toString().replace('\n', ' ');
                }
                System.out.println(answer);
                System.out.flush();
            }
        }
    }

    private static KafkaProducer<String, String> producer(Map<String, Object> settings) {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    /** Every fourth value is a tombstone. */
    private static ProducerRecord<String, String> record(String topic, String key, int number) {
        return new ProducerRecord<>(topic, 0, key, number % 4 == 3 ? null : key + "=" + number + "x".repeat(100));
    }
}
