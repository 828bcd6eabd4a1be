import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecords.RecordFilter;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
// Kafka 4.4 has moved some of these from the first package to the second.
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.server.config.ServerLogConfigs;
import org.apache.kafka.server.record.BrokerCompressionType;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;

/**
 * Facts from a broker's own classes, one per line: `name value`. The arguments are hex: uncompressed batches
 * of magic 1, and a batch of magic 2 with a valid CRC whose gzip payload is not gzip.
 */
public class Facts {
    public static void main(String[] arguments) throws ReflectiveOperationException {
        HexFormat hex = HexFormat.of();
        MemoryRecords old = MemoryRecords.readableRecords(ByteBuffer.wrap(hex.parseHex(arguments[0])));
        MemoryRecords damaged = MemoryRecords.readableRecords(ByteBuffer.wrap(hex.parseHex(arguments[1])));
        print("compressionTypes", String.join(",", BrokerCompressionType.names()));
        print("controlTypes", Arrays.toString(ControlRecordType.values()));
        print("maxMessageBytes", ServerLogConfigs.MAX_MESSAGE_BYTES_DEFAULT);
        print("batchesKeptOfAProducer", ProducerStateEntry.NUM_BATCHES_TO_RETAIN);
        print("produce9RequestHeader", ApiKeys.PRODUCE.requestHeaderVersion((short) 9));
        print("produce9ResponseHeader", ApiKeys.PRODUCE.responseHeaderVersion((short) 9));
        print("apiVersions3ResponseHeader", ApiKeys.API_VERSIONS.responseHeaderVersion((short) 3));
        print("downConverts", Arrays.asList(FileRecords.class, MemoryRecords.class).stream()
            .flatMap(type -> Arrays.stream(type.getMethods())).anyMatch(method -> method.getName().equals("downConvert")));
        print("cleanedMagics", cleaned(old));
        print("requestHoldsTheBatches", hex.formatHex(request(old)).contains(arguments[0]));
        print("appendOfDamagedGzip", append(damaged));
    }

    static void print(String name, Object value) {
        System.out.println(name + " " + value);
    }

    /** The magics that are left after a cleaner has dropped the first record. */
    static String cleaned(MemoryRecords records) throws ReflectiveOperationException {
        ByteBuffer out = ByteBuffer.allocate(1000);
        RecordFilter filter = new RecordFilter(0, 0) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.DELETE_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return record.offset() > 0;
            }
        };
        // Since Kafka 4.4, the largest size of a record is the last argument.
        Method filterTo = Arrays.stream(MemoryRecords.class.getMethods())
            .filter(method -> method.getName().equals("filterTo")).findAny().orElseThrow();
        Object[] arguments = {filter, out, BufferSupplier.NO_CACHING, Integer.MAX_VALUE};
        filterTo.invoke(records, Arrays.copyOf(arguments, filterTo.getParameterCount()));
        out.flip();
        return StreamSupport.stream(MemoryRecords.readableRecords(out).batches().spliterator(), false)
            .map(batch -> String.valueOf(batch.magic())).toList().toString();
    }

    static byte[] request(MemoryRecords records) {
        var partition = new ProduceRequestData.PartitionProduceData().setRecords(records);
        var topic = new ProduceRequestData.TopicProduceData().setName("t");
        topic.partitionData().add(partition);
        var data = new ProduceRequestData();
        data.topicData().add(topic);
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(data, (short) 3).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    /** A leader's answer if only the compressed bytes are wrong and the codec stays the same. */
    static String append(MemoryRecords records) {
        var metrics = (LogValidator.MetricsRecorder) Proxy.newProxyInstance(Facts.class.getClassLoader(),
            new Class<?>[] {LogValidator.MetricsRecorder.class}, (proxy, method, values) -> null);
        try {
            new LogValidator(records, new TopicPartition("t", 0), Time.SYSTEM, CompressionType.GZIP,
                Compression.gzip().build(), false, RecordBatch.MAGIC_VALUE_V2, TimestampType.CREATE_TIME, Long.MAX_VALUE,
                Long.MAX_VALUE, 0, AppendOrigin.CLIENT)
                .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), metrics, BufferSupplier.NO_CACHING);
            return "appended";
        } catch (RuntimeException e) {
            return e.toString().replace('\n', ' ');
        }
    }
}
