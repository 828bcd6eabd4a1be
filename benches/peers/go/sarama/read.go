package sarama

// ReadRecordBatches passes every record of whole batches to visit. sarama reads batches only inside
// responses; in the bench's own copy of sarama, this gives access to its reader.
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
