package bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/**
 * Validates the batches of a file as a producer's appends, one by one and repeatedly: CRC, then Kafka's
 * LogValidator, which assigns offsets in place or rewrites with another codec. Prints records/s for each
 * round.
 */
public final class Validate {
    private static final long ROUND_NANOS = 50_000_000;
    private static final TopicPartition PARTITION = new TopicPartition("bench", 0);
    private static final LogValidator.MetricsRecorder METRICS = new LogValidator.MetricsRecorder() {
        @Override public void recordInvalidMagic() { }
        @Override public void recordInvalidOffset() { }
        @Override public void recordInvalidSequence() { }
        @Override public void recordInvalidChecksums() { }
        @Override public void recordNoKeyCompactedTopic() { }
    };

    private final Compression target;
    private final List<ByteBuffer> batches;
    private final BufferSupplier buffers = BufferSupplier.create();

    private Validate(Compression target, List<ByteBuffer> batches) {
        this.target = target;
        this.batches = batches;
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 6) {
            System.err.println("usage: Validate TARGET_CODEC|producer FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS");
            System.exit(2);
        }
        Compression target = args[0].equals("producer") ? null : Compression.of(CompressionType.forName(args[0])).build();
        List<ByteBuffer> batches = read(ByteBuffer.wrap(Files.readAllBytes(Path.of(args[1]))), Long.parseLong(args[3]));
        Validate validate = new Validate(target, batches);
        if (validate.pass() != Long.parseLong(args[2])) throw new IllegalStateException("a wrong number of records");
        validate.recordsPerSecond((long) (Double.parseDouble(args[4]) * 1e9));
        for (int round = Integer.parseInt(args[5]); round > 0; round--) {
            System.out.printf(Locale.ROOT, "%.0f%n", validate.recordsPerSecond(ROUND_NANOS));
        }
    }

    private static List<ByteBuffer> read(ByteBuffer data, long expectedBytes) {
        List<ByteBuffer> batches = new ArrayList<>();
        long bytes = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(data).batches()) {
            for (Record record : batch) bytes += record.keySize() + record.valueSize();
            ByteBuffer copy = ByteBuffer.allocate(batch.sizeInBytes());
            batch.writeTo(copy);
            batches.add(copy.flip());
        }
        if (bytes != expectedBytes) throw new IllegalStateException(bytes + " bytes instead of " + expectedBytes);
        return batches;
    }

    private double recordsPerSecond(long atLeastNanos) {
        long start = cpuNanos();
        long records = 0;
        long elapsed;
        do {
            records += pass();
            elapsed = cpuNanos() - start;
        } while (elapsed < atLeastNanos);
        return records * 1e9 / elapsed;
    }

    /** CPU time of this thread, without compiler and collector, since other processes may share the core. */
    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private long pass() {
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(0);
        for (ByteBuffer bytes : batches) {
            // As a producer sends it: the base offset is 0.
            bytes.putLong(0, 0);
            MemoryRecords records = MemoryRecords.readableRecords(bytes);
            CompressionType source = CompressionType.NONE;
            for (MutableRecordBatch batch : records.batches()) {
                if (!batch.isValid()) throw new IllegalStateException("a wrong CRC");
                source = batch.compressionType();
            }
            Compression codec = target == null ? Compression.of(source).build() : target;
            new LogValidator(
                records, PARTITION, Time.SYSTEM, source, codec, false, (byte) 2, TimestampType.CREATE_TIME, Long.MAX_VALUE,
                Long.MAX_VALUE, 7, AppendOrigin.CLIENT
            ).validateMessagesAndAssignOffsets(offset, METRICS, buffers);
        }
        return offset.value;
    }
}
