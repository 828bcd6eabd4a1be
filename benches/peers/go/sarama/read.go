package sarama

// ReadRecordBatches hands over every record of whole batches. sarama reads batches only inside of
// responses; this opens its reader to the bench, in the bench's own copy of sarama.
func ReadRecordBatches(data []byte, visit func(*Record)) error {
	decoder := &realDecoder{raw: data}
	for decoder.remaining() > 0 {
		var batch RecordBatch
		if err := batch.decode(decoder); err != nil {
			return err
		}
		for _, record := range batch.Records {
			visit(record)
		}
	}
	return nil
}
