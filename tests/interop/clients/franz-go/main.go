// A consumer of franz-go that reads partition 0 of many topics. Arguments: bootstrap servers, isolation level, "assign" or
// the group to subscribe with, the number of records to wait for, topics. Prints "topic offset timestamp type key value
// headers", tab-separated, in the order of each topic.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 30 * time.Second

// By kgo.RecordAttrs.TimestampType: Kafka's names.
var timestampTypes = map[int8]string{-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 5 {
		return errors.New("usage: franz-go BOOTSTRAP_SERVERS ISOLATION_LEVEL GROUP|assign RECORDS TOPIC...")
	}
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(options(args[0], args[1], args[2], args[4:])...)
	if err != nil {
		return err
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for read := 0; read < count; {
		fetches := client.PollFetches(limited)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d of %d records: %w", read, count, err)
		}
		fetches.EachRecord(func(record *kgo.Record) { write(out, record) })
		read += fetches.NumRecords()
	}
	return nil
}

func options(bootstrap, isolation, group string, topics []string) []kgo.Opt {
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	start := kgo.NewOffset().AtStart()
	chosen := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.FetchIsolationLevel(level), kgo.FetchMaxWait(50 * time.Millisecond),
	}
	if group != "assign" {
		return append(chosen, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(start))
	}
	partitions := make(map[string]map[int32]kgo.Offset)
	for _, topic := range topics {
		partitions[topic] = map[int32]kgo.Offset{0: start}
	}
	return append(chosen, kgo.ConsumePartitions(partitions))
}

func write(out *bufio.Writer, record *kgo.Record) {
	kind := timestampTypes[record.Attrs.TimestampType()]
	fmt.Fprintf(out, "%s\t%d\t%d\t%s\t%s\t%s\t", record.Topic, record.Offset, record.Timestamp.UnixMilli(), kind,
		text(record.Key), text(record.Value))
	for _, header := range record.Headers {
		fmt.Fprintf(out, "%s=%s;", hex.EncodeToString([]byte(header.Key)), text(header.Value))
	}
	out.WriteByte('\n')
}

func text(data []byte) string {
	if data == nil {
		return "null"
	}
	return hex.EncodeToString(data)
}
