import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.compress.GzipCompression;
import org.apache.kafka.common.compress.Lz4Compression;
import org.apache.kafka.common.compress.ZstdCompression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Bytes of all three magics as Kafka writes them, with the last version that builds magic 0 and 1.
 *
 * <p>A request is a line of words, the answer a line of hex, or, with a space in it, an error:
 *
 * <pre>
 * compress magic codec level hex
 * build magic codec level timestampType baseOffset appendTime pid epoch sequence txn leaderEpoch deleteHorizon record..
 * control, and the same words: a batch of control records
 * marker type baseOffset timestamp pid epoch leaderEpoch coordinatorEpoch
 * </pre>
 *
 * A record is offset,timestamp,key,value, followed by ,key,value for each header, in hex or ~ for null. Level
 * - is the default.
 */
public final class Builder {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                String[] words = line.split(" ");
                answer = HEX.formatHex(switch (words[0]) {
                    case "compress" -> compress(words);
                    case "build" -> build(words, false);
                    case "control" -> build(words, true);
                    case "marker" -> marker(words);
                    default -> throw new IllegalArgumentException("no such request");
                });
            } catch (Exception e) {
                answer = "error " + e.toString().replace('\n', ' ');
            }
            out.println(answer);
            out.flush();
        }
    }

    private static byte[] compress(String[] w) throws Exception {
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(512);
        try (OutputStream stream = compression(w[2], w[3]).wrapForOutput(buffer, Byte.parseByte(w[1]))) {
            stream.write(w.length > 4 ? HEX.parseHex(w[4]) : new byte[0]);
        }
        return written(buffer);
    }

    private static byte[] build(String[] w, boolean control) {
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(512);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            buffer, Byte.parseByte(w[1]), compression(w[2], w[3]), TimestampType.forName(w[4]), Long.parseLong(w[5]),
            Long.parseLong(w[6]), Long.parseLong(w[7]), Short.parseShort(w[8]), Integer.parseInt(w[9]),
            Boolean.parseBoolean(w[10]), control, Integer.parseInt(w[11]), Integer.MAX_VALUE, Long.parseLong(w[12]));
        for (int i = 13; i < w.length; i++) {
            String[] field = w[i].split(",", -1);
            Header[] headers = new Header[(field.length - 4) / 2];
            for (int h = 0; h < headers.length; h++) {
                String key = new String(bytes(field[4 + 2 * h]), StandardCharsets.UTF_8);
                headers[h] = new RecordHeader(key, bytes(field[5 + 2 * h]));
            }
            long offset = Long.parseLong(field[0]);
            SimpleRecord record = new SimpleRecord(Long.parseLong(field[1]), bytes(field[2]), bytes(field[3]), headers);
            if (control) builder.appendControlRecordWithOffset(offset, record);
            else builder.appendWithOffset(offset, record);
        }
        builder.close();
        return written(buffer);
    }

    private static byte[] marker(String[] w) {
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(128);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            buffer, (byte) 2, Compression.NONE, TimestampType.CREATE_TIME, Long.parseLong(w[2]), -1L, Long.parseLong(w[4]),
            Short.parseShort(w[5]), -1, true, true, Integer.parseInt(w[6]), Integer.MAX_VALUE);
        ControlRecordType type = ControlRecordType.valueOf(w[1]);
        builder.appendEndTxnMarker(Long.parseLong(w[3]), new EndTransactionMarker(type, Integer.parseInt(w[7])));
        builder.close();
        return written(buffer);
    }

    private static byte[] written(ByteBufferOutputStream stream) {
        ByteBuffer buffer = stream.buffer();
        buffer.flip();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static Compression compression(String codec, String level) {
        CompressionType type = CompressionType.forName(codec);
        if (level.equals("-")) return Compression.of(type).build();
        int number = Integer.parseInt(level);
        return switch (type) {
            case GZIP -> new GzipCompression.Builder().level(number).build();
            case LZ4 -> new Lz4Compression.Builder().level(number).build();
            case ZSTD -> new ZstdCompression.Builder().level(number).build();
            default -> throw new IllegalArgumentException(codec + " has no levels");
        };
    }

    private static byte[] bytes(String hex) {
        return hex.equals("~") ? null : HEX.parseHex(hex);
    }
}
