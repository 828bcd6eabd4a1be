import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
// Kafka 4.4 has moved some of these from the first package to the second.
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/**
 * What a Kafka consumer makes of bytes: each line of input is hex, each line of output its verdict as JSON.
 *
 * <p>Takes the steps of the consumer's CompletedFetch: frame, batch.ensureValid, streaming iterator,
 * record.ensureValid, then every field. Any exception, typed or not, is a refusal.
 */
public final class Oracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final Field HEADER_KEY = headerKey();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(read(HEX.parseHex(line)));
            out.flush();
        }
    }

    private static String read(byte[] bytes) {
        StringBuilder json = new StringBuilder("{\"batches\":[");
        Throwable refusal = null;
        int framed = 0;
        try {
            Iterator<MutableRecordBatch> batches = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batchIterator();
            for (String comma = ""; batches.hasNext(); comma = ",") {
                MutableRecordBatch batch = batches.next();
                framed += batch.sizeInBytes();
                json.append(comma);
                batch(batch, json);
            }
        } catch (Throwable e) {
            refusal = e;
        }
        json.append("],\"framed\":").append(framed).append(",\"error\":");
        return error(refusal, json).append('}').toString();
    }

    private static void batch(RecordBatch batch, StringBuilder json) {
        json.append("{\"header\":[");
        fact(json, batch::magic);
        fact(json.append(','), batch::baseOffset);
        fact(json.append(','), batch::lastOffset);
        fact(json.append(','), batch::sizeInBytes);
        fact(json.append(','), batch::checksum);
        fact(json.append(','), () -> batch.compressionType().id);
        fact(json.append(','), () -> batch.timestampType().id);
        fact(json.append(','), batch::maxTimestamp);
        fact(json.append(','), () -> batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        fact(json.append(','), batch::partitionLeaderEpoch);
        fact(json.append(','), batch::producerId);
        fact(json.append(','), batch::producerEpoch);
        fact(json.append(','), batch::baseSequence);
        fact(json.append(','), batch::lastSequence);
        fact(json.append(','), batch::isTransactional);
        fact(json.append(','), batch::isControlBatch);
        fact(json.append(','), batch::countOrNull);
        json.append("],\"records\":[");
        Throwable refusal = null;
        int before = json.length();
        try {
            batch.ensureValid();
            try (CloseableIterator<Record> records = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                for (String comma = ""; records.hasNext(); comma = ",") {
                    Record record = records.next();
                    record.ensureValid();
                    StringBuilder one = new StringBuilder(comma);
                    record(batch, record, one);
                    json.append(one);
                }
            }
        } catch (Throwable e) {
            refusal = e;
        }
        if (refusal instanceof OutOfMemoryError) json.setLength(before);
        error(refusal, json.append("],\"error\":")).append('}');
    }

    private static void record(RecordBatch batch, Record record, StringBuilder json) throws IllegalAccessException {
        json.append('[').append(record.offset()).append(',').append(record.timestamp());
        json.append(',').append(timestampType(batch, record).id).append(',');
        bytes(record.key(), json);
        bytes(record.value(), json.append(','));
        json.append(",[");
        String comma = "";
        for (Header header : record.headers()) {
            // The stored bytes: key() would decode them.
            bytes((ByteBuffer) HEADER_KEY.get(header), json.append(comma).append('['));
            bytes(header.value() == null ? null : ByteBuffer.wrap(header.value()), json.append(','));
            json.append(']');
            comma = ",";
        }
        json.append("],").append(record.sequence()).append(']');
    }

    /** Only legacy records have a timestamp type of their own; those of magic 2 have the batch's. */
    private static TimestampType timestampType(RecordBatch batch, Record record) {
        for (TimestampType type : TimestampType.values()) {
            if (record.hasTimestampType(type)) return type;
        }
        return batch.timestampType();
    }

    private static void bytes(ByteBuffer data, StringBuilder json) {
        if (data == null) {
            json.append("null");
            return;
        }
        byte[] copy = new byte[data.remaining()];
        data.duplicate().get(copy);
        json.append('"').append(HEX.formatHex(copy)).append('"');
    }

    private interface Fact {
        Object get();
    }

    /** Appends a header field, or null if it cannot be read; then the batch's own error says why. */
    private static void fact(StringBuilder json, Fact fact) {
        Object value;
        try {
            value = fact.get();
        } catch (Throwable e) {
            value = null;
        }
        json.append(value);
    }

    private static StringBuilder error(Throwable refusal, StringBuilder json) {
        if (refusal == null) return json.append("null");
        String text = refusal.getClass().getSimpleName() + ": " + refusal.getMessage();
        if (refusal.getCause() != null) text += " <- " + refusal.getCause();
        json.append('"');
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') json.append('\\').append(c);
            else if (c < ' ') json.append(' ');
            else json.append(c);
        }
        return json.append('"');
    }

    private static Field headerKey() {
        try {
            Field field = RecordHeader.class.getDeclaredField("keyBuffer");
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException("kafka-clients has changed: RecordHeader.keyBuffer is gone", e);
        }
    }
}
