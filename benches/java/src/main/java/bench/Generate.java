package bench;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Writes every shape in every codec, and {@code manifest.json} with the records and bytes that a reader must
 * find. The seed makes the records the same in each codec and on each machine.
 */
public final class Generate {
    private static final long SEED = 20_261_121;
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;

    public static void main(String[] args) throws IOException {
        Path directory = Files.createDirectories(Path.of(args[0]));
        Path manifest = directory.resolve("manifest.json");
        Files.deleteIfExists(manifest);
        List<String> sets = new ArrayList<>();
        for (Shape shape : Shape.values()) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec != CompressionType.ZSTD || shape.magic == 2) {
                    sets.add(write(shape, codec, directory));
                }
            }
        }
        // Written last: a manifest marks a complete directory.
        Files.writeString(manifest, String.format(
            "{\"writer\": \"kafka-clients %s\", \"seed\": %d, \"sets\": [%n%s%n]}%n",
            AppInfoParser.getVersion(), SEED, String.join(",\n", sets)));
    }

    private static String write(Shape shape, CompressionType codec, Path directory) throws IOException {
        String name = (shape + "-" + codec).toLowerCase(Locale.ROOT);
        SplittableRandom random = new SplittableRandom(SEED);
        ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
        long offset = 0;
        long timestamp = FIRST_TIMESTAMP;
        long payload = 0;
        Path file = directory.resolve(name + ".log");
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            for (int batch = 0; batch < shape.batches; batch++) {
                buffer.clear();
                MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, shape.magic,
                    Compression.of(codec).build(), TimestampType.CREATE_TIME, offset);
                for (int i = 0; i < shape.recordsInBatch; i++, offset++) {
                    byte[] key = shape.key(random);
                    byte[] value = shape.value(offset, random);
                    timestamp += random.nextInt(20);
                    builder.appendWithOffset(offset, timestamp, key, value, shape.headers(random));
                    payload += key.length + value.length;
                }
                ByteBuffer built = builder.build().buffer();
                out.write(built.array(), built.arrayOffset() + built.position(), built.remaining());
            }
        }
        return String.format(Locale.ROOT,
            "  {\"name\": \"%s\", \"shape\": \"%s\", \"codec\": \"%s\", \"magic\": %d,"
                + " \"records\": %d, \"bytes\": %d, \"size\": %d}",
            name, shape.description, codec.name, shape.magic, offset, payload, Files.size(file));
    }

    private Generate() {
    }
}
