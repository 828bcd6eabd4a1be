// Reads a file of batches repeatedly with Go's clients in turn, in one process, and prints a line for each
// round of a client: its name and records/s. Frame, CRC, decompress, every record, touch key and value.
//
// A client that does not find every record and byte of the file ends the program with an error.
package main

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	round = 50 * time.Millisecond
	fetch = 1 << 20
)

// What one pass over a file finds; bytes counts keys and values.
type found struct {
	records, bytes int64
}

type reader struct {
	name string
	read func(data []byte) (found, error)
}

var readers = []reader{{"franz-go", franzGo}, {"sarama", saramaClient}}

// Keeps the compiler from removing the reads.
var touched byte

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 6 {
		return errors.New("usage: peers NAME,NAME FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS")
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var expected found
	var warmUp float64
	var rounds int
	if _, err := fmt.Sscan(strings.Join(args[2:], " "), &expected.records, &expected.bytes, &warmUp, &rounds); err != nil {
		return err
	}
	var chosen []reader
	for _, name := range strings.Split(args[0], ",") {
		of, err := named(name)
		if err != nil {
			return err
		}
		if _, err := of.recordsPerSecond(data, expected, time.Duration(warmUp*float64(time.Second))); err != nil {
			return err
		}
		chosen = append(chosen, of)
	}
	for ; rounds > 0; rounds-- {
		for _, of := range chosen {
			rate, err := of.recordsPerSecond(data, expected, round)
			if err != nil {
				return err
			}
			fmt.Println(of.name, strconv.FormatFloat(rate, 'f', 0, 64))
		}
	}
	return nil
}

func named(name string) (reader, error) {
	for _, of := range readers {
		if of.name == name {
			return of, nil
		}
	}
	return reader{}, fmt.Errorf("no reader named %s", name)
}

// Repeats passes for at least atLeast. Measures the process's CPU time, including the collector's work for
// the reader.
func (r reader) recordsPerSecond(data []byte, expected found, atLeast time.Duration) (float64, error) {
	start := cpuTime()
	for passes := int64(1); ; passes++ {
		got, err := r.read(data)
		if err == nil && got != expected {
			err = fmt.Errorf("%v records and bytes instead of %v", got, expected)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", r.name, err)
		}
		if elapsed := cpuTime() - start; elapsed >= atLeast {
			return float64(passes*expected.records) / elapsed.Seconds(), nil
		}
	}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var decompressor = kgo.DefaultDecompressor()

func franzGo(data []byte) (found, error) {
	partition := kmsg.NewFetchResponseTopicPartition()
	var all found
	// One fetch at a time, as a consumer gets them.
	for fetch := range fetches(data) {
		partition.RecordBatches = fetch
		options := kgo.ProcessFetchPartitionOpts{Topic: "bench"}
		read, _ := kgo.ProcessFetchPartition(options, &partition, decompressor, nil)
		if read.Err != nil {
			return all, read.Err
		}
		for _, record := range read.Records {
			all.touch(record.Key, record.Value)
		}
	}
	return all, nil
}

func saramaClient(data []byte) (found, error) {
	var all found
	for fetch := range fetches(data) {
		err := sarama.ReadRecordBatches(fetch, func(record *sarama.Record) { all.touch(record.Key, record.Value) })
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func (f *found) touch(key, value []byte) {
	if len(key) > 0 {
		touched += key[0]
	}
	if len(value) > 0 {
		touched += value[0]
	}
	f.records++
	f.bytes += int64(len(key) + len(value))
}

// Yields whole batches of about 1 MiB together (Kafka's max.partition.fetch.bytes), without a cut last batch.
func fetches(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			size := 0
			for size < fetch && batchSize(data[size:]) <= len(data)-size {
				size += batchSize(data[size:])
			}
			if size == 0 || !yield(data[:size]) {
				return
			}
			data = data[size:]
		}
	}
}

func batchSize(data []byte) int {
	if len(data) < 12 {
		return math.MaxInt
	}
	return 12 + int(uint32(data[8])<<24|uint32(data[9])<<16|uint32(data[10])<<8|uint32(data[11]))
}
