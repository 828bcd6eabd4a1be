import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.compress.GzipCompression;
import org.apache.kafka.common.compress.ZstdCompression;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * The LogValidator of the last Kafka version whose topics could store magic 0 and 1. A request is a line of
 * words:
 *
 * <pre>
 * nextOffset leaderEpoch now origin magic codec level compacted timestampType before after hex
 * </pre>
 *
 * The codec "producer" keeps the source's. Answers: "stored maxTimestamp lastOffset temporaryBytes converted hex", or
 * "refused name typed recordIndexes".
 */
public final class Validator {
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicPartition PARTITION = new TopicPartition("given", 0);
    private static final LogValidator.MetricsRecorder METRICS = new LogValidator.MetricsRecorder() {
        @Override public void recordInvalidMagic() { }
        @Override public void recordInvalidOffset() { }
        @Override public void recordInvalidSequence() { }
        @Override public void recordInvalidChecksums() { }
        @Override public void recordNoKeyCompactedTopic() { }
    };

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] w) {
        try {
            return validate(w);
        } catch (RecordValidationException e) {
            String records = e.recordErrors().stream().map(one -> "" + one.batchIndex).collect(Collectors.joining(","));
            return refused(e.invalidException(), records);
        } catch (Throwable e) {
            return refused(e, "");
        }
    }

    private static String refused(Throwable error, String records) {
        Errors named = Errors.forException(error);
        boolean typed = error instanceof ApiException && named != Errors.UNKNOWN_SERVER_ERROR;
        return String.join(" ", "refused", named.name(), "" + typed, records);
    }

    private static String validate(String[] w) {
        long now = Long.parseLong(w[2]);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(w[11])));
        CompressionType source = CompressionType.NONE;
        for (MutableRecordBatch batch : records.batches()) {
            if (batch.compressionType() != CompressionType.NONE) source = batch.compressionType();
        }
        Compression target = w[5].equals("producer") ? Compression.of(source).build() : compression(w[5], w[6]);
        var validator = new LogValidator(
            records, PARTITION, new Clock(now), source, target, Boolean.parseBoolean(w[7]), Byte.parseByte(w[4]),
            TimestampType.forName(w[8]), Long.parseLong(w[9]), Long.parseLong(w[10]), Integer.parseInt(w[1]),
            AppendOrigin.valueOf(w[3]), MetadataVersion.latestProduction());
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(Long.parseLong(w[0]));
        LogValidator.ValidationResult result =
            validator.validateMessagesAndAssignOffsets(offset, METRICS, BufferSupplier.NO_CACHING);
        ByteBuffer buffer = result.validatedRecords.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        var stats = result.recordValidationStats;
        return String.join(" ", "stored", "" + result.maxTimestampMs, "" + (offset.value - 1),
            "" + stats.temporaryMemoryBytes(), "" + stats.numRecordsConverted(), HEX.formatHex(bytes));
    }

    private static Compression compression(String codec, String level) {
        CompressionType type = CompressionType.forName(codec);
        if (level.equals("-")) return Compression.of(type).build();
        int number = Integer.parseInt(level);
        return switch (type) {
            case GZIP -> new GzipCompression.Builder().level(number).build();
            case ZSTD -> new ZstdCompression.Builder().level(number).build();
            default -> throw new IllegalArgumentException(codec);
        };
    }

    /** A clock that never advances. */
    private record Clock(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
