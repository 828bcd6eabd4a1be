package bench;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

/**
 * Rebuilds the batches of a file repeatedly from byte arrays, and prints records/s for each round. At the end
 * it prints the number of bytes of one pass to standard error, and writes them to OUT if it is given.
 */
public final class Encode {
    private static final long ROUND_NANOS = 50_000_000;

    private record Row(long offset, long timestamp, byte[] key, byte[] value) { }

    private final Compression codec;
    private final List<List<Row>> batches;
    private final long records;
    private final ByteBuffer buffer = ByteBuffer.allocate(4 << 20);

    private Encode(Compression codec, List<List<Row>> batches, long records) {
        this.codec = codec;
        this.batches = batches;
        this.records = records;
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 6 && args.length != 7) {
            System.err.println("usage: Encode CODEC FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS [OUT]");
            System.exit(2);
        }
        List<List<Row>> batches = read(ByteBuffer.wrap(Files.readAllBytes(Path.of(args[1]))));
        long records = check(batches, Long.parseLong(args[2]), Long.parseLong(args[3]));
        Encode encode = new Encode(Compression.of(CompressionType.forName(args[0])).build(), batches, records);
        encode.recordsPerSecond((long) (Double.parseDouble(args[4]) * 1e9));
        for (int round = Integer.parseInt(args[5]); round > 0; round--) {
            System.out.printf(Locale.ROOT, "%.0f%n", encode.recordsPerSecond(ROUND_NANOS));
        }
        try (OutputStream out = args.length == 7 ? new FileOutputStream(args[6]) : OutputStream.nullOutputStream()) {
            System.err.println(encode.pass(out));
        }
    }

    private static List<List<Row>> read(ByteBuffer data) {
        List<List<Row>> batches = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(data).batches()) {
            batch.ensureValid();
            List<Row> rows = new ArrayList<>();
            for (Record record : batch) {
                rows.add(new Row(record.offset(), record.timestamp(), bytes(record.key()), bytes(record.value())));
            }
            batches.add(rows);
        }
        return batches;
    }

    private static long check(List<List<Row>> batches, long expectedRecords, long expectedBytes) {
        long records = 0;
        long bytes = 0;
        for (List<Row> rows : batches) {
            for (Row row : rows) {
                records++;
                bytes += row.key.length + row.value.length;
            }
        }
        if (records != expectedRecords || bytes != expectedBytes) {
            throw new IllegalStateException(String.format("%d records of %d bytes instead of %d of %d",
                records, bytes, expectedRecords, expectedBytes));
        }
        return records;
    }

    private double recordsPerSecond(long atLeastNanos) throws IOException {
        long start = cpuNanos();
        long passes = 0;
        long elapsed;
        do {
            pass(OutputStream.nullOutputStream());
            passes++;
            elapsed = cpuNanos() - start;
        } while (elapsed < atLeastNanos);
        return passes * records * 1e9 / elapsed;
    }

    /** CPU time of this thread, without compiler and collector, since other processes may share the core. */
    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private long pass(OutputStream out) throws IOException {
        long size = 0;
        for (List<Row> rows : batches) {
            buffer.clear();
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                buffer, (byte) 2, codec, TimestampType.CREATE_TIME, rows.get(0).offset);
            for (Row row : rows) {
                builder.appendWithOffset(row.offset, row.timestamp, row.key, row.value, Record.EMPTY_HEADERS);
            }
            ByteBuffer built = builder.build().buffer();
            out.write(built.array(), built.arrayOffset() + built.position(), built.remaining());
            size += built.remaining();
        }
        return size;
    }

    private static byte[] bytes(ByteBuffer data) {
        byte[] copy = new byte[data.remaining()];
        data.get(copy);
        return copy;
    }
}
