// tlog FILE: checks checkpoints, roots and proofs with golang.org/x/mod/sumdb, which shares no code
// with qualify. FILE has one statement a line, in order:
//
//	vkey TEXT                 the log's public key
//	leaf BASE64               the next leaf's bytes
//	checkpoint BASE64         a signed note over all leaves so far
//	inclusion INDEX HASH…     proof under the newest checkpoint's root (base 64 hashes)
//	consistency OLD HASH…     proof from the root of size OLD to the newest checkpoint's
//
// Prints "ok" and how many of each were checked; exit 1 at the first that is wrong.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type memory []tlog.Hash

func (m memory) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var hashes []tlog.Hash
	for _, index := range indexes {
		hashes = append(hashes, m[index])
	}
	return hashes, nil
}

func decode(text string) []byte {
	bytes, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		panic(err)
	}
	return bytes
}

func hash(text string) (h tlog.Hash) {
	if copy(h[:], decode(text)) != tlog.HashSize {
		panic("hash size")
	}
	return h
}

func hashes(texts []string) (list []tlog.Hash) {
	for _, text := range texts {
		list = append(list, hash(text))
	}
	return list
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	var (
		verifier note.Verifier
		stored   memory
		leaves   []tlog.Hash
		roots    = map[int64]tlog.Hash{}
		size     int64
		counts   = map[string]int{}
		line     = 0
	)
	fail := func(format string, args ...any) {
		fmt.Printf("line %d: %s\n", line, fmt.Sprintf(format, args...))
		os.Exit(1)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line++
		words := strings.Fields(lines.Text())
		counts[words[0]]++
		switch words[0] {
		case "vkey":
			if verifier, err = note.NewVerifier(words[1]); err != nil {
				fail("verifier: %v", err)
			}
		case "leaf":
			leaf := tlog.RecordHash(decode(words[1]))
			more, err := tlog.StoredHashesForRecordHash(int64(len(leaves)), leaf, stored)
			if err != nil {
				fail("hashes: %v", err)
			}
			stored = append(stored, more...)
			leaves = append(leaves, leaf)
		case "checkpoint":
			opened, err := note.Open(decode(words[1]), note.VerifierList(verifier))
			if err != nil {
				fail("note: %v", err)
			}
			parts := strings.Split(opened.Text, "\n")
			size = number(parts[1])
			if parts[0] != verifier.Name() || size != int64(len(leaves)) {
				fail("origin %q or size %d is not as expected", parts[0], size)
			}
			root, err := tlog.TreeHash(size, stored)
			if err != nil {
				fail("root: %v", err)
			}
			if root != hash(parts[2]) {
				fail("the root of %d leaves is %v, not %s", size, root, parts[2])
			}
			roots[size] = root
		case "inclusion":
			index := number(words[1])
			if err := tlog.CheckRecord(hashes(words[2:]), size, roots[size], index, leaves[index]); err != nil {
				fail("inclusion of %d in %d: %v", index, size, err)
			}
		case "consistency":
			old := number(words[1])
			if err := tlog.CheckTree(hashes(words[2:]), size, roots[size], old, roots[old]); err != nil {
				fail("consistency of %d with %d: %v", old, size, err)
			}
		default:
			fail("unknown statement %s", words[0])
		}
	}
	fmt.Println("ok", counts["checkpoint"], counts["inclusion"], counts["consistency"])
}
