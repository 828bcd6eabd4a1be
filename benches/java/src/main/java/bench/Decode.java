package bench;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Decodes a file of batches repeatedly, as a consumer does, and prints records/s for each round:
 * frame, CRC, decompress, every record, touch key and value.
 *
 * <p>Each file gets a JVM of its own: one that has seen several codecs runs each of them slower.
 */
public final class Decode {
    private static final long ROUND_NANOS = 50_000_000;

    private final ByteBuffer data;
    private final long expectedRecords;
    private final long expectedBytes;
    /** Reuses decompression buffers from batch to batch, as a consumer's fetcher does. */
    private final BufferSupplier buffers = BufferSupplier.create();
    private int touched;

    private Decode(ByteBuffer data, long expectedRecords, long expectedBytes) {
        this.data = data;
        this.expectedRecords = expectedRecords;
        this.expectedBytes = expectedBytes;
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 5) {
            System.err.println("usage: Decode FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS");
            System.exit(2);
        }
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[0])));
        Decode decode = new Decode(data, Long.parseLong(args[1]), Long.parseLong(args[2]));
        decode.recordsPerSecond((long) (Double.parseDouble(args[3]) * 1e9));
        for (int round = Integer.parseInt(args[4]); round > 0; round--) {
            System.out.printf(Locale.ROOT, "%.0f%n", decode.recordsPerSecond(ROUND_NANOS));
        }
        System.err.println("touched " + decode.touched);
    }

    private double recordsPerSecond(long atLeastNanos) {
        long start = cpuNanos();
        long passes = 0;
        long elapsed;
        do {
            pass();
            passes++;
            elapsed = cpuNanos() - start;
        } while (elapsed < atLeastNanos);
        return passes * expectedRecords * 1e9 / elapsed;
    }

    /** CPU time of this thread, without compiler and collector, since other processes may share the core. */
    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private void pass() {
        long records = 0;
        long bytes = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(data.duplicate()).batches()) {
            batch.ensureValid();
            try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
                while (iterator.hasNext()) {
                    Record record = iterator.next();
                    ByteBuffer key = record.key();
                    ByteBuffer value = record.value();
                    touched += key.get(key.position()) + value.get(value.position());
                    bytes += key.remaining() + value.remaining();
                    records++;
                }
            }
        }
        if (records != expectedRecords || bytes != expectedBytes) {
            throw new IllegalStateException(String.format("%d records of %d bytes instead of %d of %d",
                records, bytes, expectedRecords, expectedBytes));
        }
    }
}
