package bench;

import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.Record;

/** The kinds of records in the sets; each set is about 65 MB uncompressed. */
enum Shape {
    S1("1000 x (16 B key, 100 B JSON value)", 2, 512, 1000, 100, false),
    S2("S1 with 3 headers", 2, 310, 1000, 100, true),
    S3("100 x (16 B key, 10 KiB value)", 2, 64, 100, 10 << 10, false),
    S4("10 x (16 B key, 100 B JSON value)", 2, 50_000, 10, 100, false),
    S1V1("S1 in magic 1", 1, 450, 1000, 100, false);

    private static final String[] EVENTS = {"click", "view", "cart", "order", "refund", "search", "login", "logout"};
    private static final byte[] JSON_TYPE = utf8("application/json");
    private static final byte[] SOURCE = utf8("checkout-eu-1");

    final String description;
    final byte magic;
    final int batches;
    final int recordsInBatch;
    private final int valueSize;
    private final boolean withHeaders;

    Shape(String description, int magic, int batches, int recordsInBatch, int valueSize, boolean withHeaders) {
        this.description = description;
        this.magic = (byte) magic;
        this.batches = batches;
        this.recordsInBatch = recordsInBatch;
        this.valueSize = valueSize;
        this.withHeaders = withHeaders;
    }

    byte[] key(SplittableRandom random) {
        return utf8(String.format("user-%011d", random.nextInt(1_000_000)));
    }

    /** Concatenated JSON objects, cut to {@code valueSize} bytes. */
    byte[] value(long offset, SplittableRandom random) {
        StringBuilder text = new StringBuilder(valueSize + 128);
        while (text.length() < valueSize) {
            text.append("{\"id\":").append(1_000_000 + offset);
            text.append(",\"event\":\"").append(EVENTS[random.nextInt(EVENTS.length)]);
            text.append("\",\"user\":").append(random.nextInt(1_000_000));
            text.append(",\"amount\":").append(random.nextInt(100_000) / 100.0);
            text.append(",\"shop\":").append(random.nextInt(20));
            text.append(",\"currency\":\"EUR\",\"mobile\":true,\"tags\":[]}\n");
        }
        return utf8(text.substring(0, valueSize));
    }

    Header[] headers(SplittableRandom random) {
        if (!withHeaders) {
            return Record.EMPTY_HEADERS;
        }
        byte[] trace = utf8(String.format("%016x%016x", random.nextLong(), random.nextLong()));
        return new Header[] {
            new RecordHeader("trace", trace),
            new RecordHeader("type", JSON_TYPE),
            new RecordHeader("source", SOURCE),
        };
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
