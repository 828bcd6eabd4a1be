package bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

/** Fails unless Kafka reads the same records from two files; CRCs are checked. */
public final class Same {
    private record Row(long offset, long timestamp, ByteBuffer key, ByteBuffer value, List<Header> headers) { }

    public static void main(String[] args) throws IOException {
        List<Row> first = read(args[0]);
        List<Row> second = read(args[1]);
        if (!first.equals(second)) {
            throw new IllegalStateException(String.format("the records differ: %d in %s, %d in %s",
                first.size(), args[0], second.size(), args[1]));
        }
    }

    private static List<Row> read(String file) throws IOException {
        List<Row> rows = new ArrayList<>();
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(data).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                List<Header> headers = Arrays.asList(record.headers());
                rows.add(new Row(record.offset(), record.timestamp(), record.key(), record.value(), headers));
            }
        }
        return rows;
    }

    private Same() {
    }
}
