// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// ConfigMap is what one published ConfigMap shall hold. What its metadata says of the HashRing is not part of it.
type ConfigMap struct {
	Name        string
	Annotations map[string]string
	Data        map[string]string
	BinaryData  map[string][]byte
}

// SlotName returns the name of the first ConfigMap of a slot.
func SlotName(ringName string, slot routing.Slot) string { return ChunkName(ringName, slot, 0) }

// ChunkName returns the name of the ConfigMap that holds a chunk of a slot, counted from 0: <ring>-a, <ring>-a-1.
func ChunkName(ringName string, slot routing.Slot, chunk int) string {
	return ringName + "-" + slot.ChunkFolder(chunk)
}

// RoutingName returns the name of the ConfigMap that holds routing.json.
func RoutingName(ringName string) string { return ringName + "-routing" }

// Publication is everything that is published for one ring.
type Publication struct {
	Numbers
	// File is routing.json, RoutingDigest its digest.
	File          routing.File
	RoutingDigest string
	// ConfigMaps are in the order in which they are written: routing comes last, so that it never names a snapshot that is
	// not there. What is taken out of a slot goes after it all the same: see Empty.
	ConfigMaps []ConfigMap
	// Empty is the slot that holds no ring; "" where both do.
	Empty routing.Slot
}

// Ref names the HashRing that something is published for. UID is empty where there is no cluster.
type Ref struct {
	Namespace, Name string
	UID             types.UID
}

// Numbers are what a publication counts.
type Numbers struct {
	Revision, Generation int64
	// LeaderEpoch is that of the operator that writes the routing file; 0 where nobody elects a leader.
	LeaderEpoch int64
}

// Render returns the ConfigMaps of a ring. All chunks of both slots are always among them: the empty slot holds a marker,
// and a chunk that is not needed an empty file, so that pods can mount all of them and none has to be optional.
//
// The ring is in d.Slot, and its candidate, where there is one, in the other slot.
//
// Where routing.json is too large with d.Down and is not without, it is left out: the ring would otherwise stay as it is with
// addresses out of date. Readers then find out by themselves who does not answer.
func Render(ref Ref, d *Desired, n Numbers) (*Publication, error) {
	slot := d.slot()
	file := routing.File{
		APIVersion:  routing.APIVersion,
		Ring:        ref.Namespace + "/" + ref.Name,
		UID:         string(ref.UID),
		Generation:  n.Generation,
		LeaderEpoch: n.LeaderEpoch,
		Stable:      referTo(ref, slot, d.Ring, n.Revision),
		Addresses:   d.Addresses,
		Down:        d.Down,
	}
	if c := d.Candidate; c != nil {
		candidate := referTo(ref, otherSlot(slot), c.Ring, c.Revision)
		file.Candidate, file.Split = &candidate, c.Split
	}
	text, err := file.Encode()
	if err != nil && len(d.Down) > 0 {
		file.Down = nil
		text, err = file.Encode()
	}
	if err != nil {
		return nil, refusef(v1alpha1.ReasonSnapshotTooLarge, "%v", err) // The rest of the file is ours, and valid.
	}
	p := &Publication{Numbers: n, File: file, RoutingDigest: ring.Digest(text)}
	if c := d.Candidate; c != nil {
		p.addRing(ref, otherSlot(slot), d.Chunks, c.Ring, c.Revision)
	} else {
		p.Empty = otherSlot(slot)
		p.add(ref, p.Empty, d.Chunks, [][]byte{ring.EmptySlot()}, nil)
	}
	p.addRing(ref, slot, d.Chunks, d.Ring, n.Revision)
	p.ConfigMaps = append(p.ConfigMaps, ConfigMap{
		Name:        RoutingName(ref.Name),
		Annotations: map[string]string{v1alpha1.AnnotationGeneration: strconv.FormatInt(n.Generation, 10)},
		Data:        map[string]string{routing.FileName: string(text)},
	})
	for _, cm := range p.ConfigMaps {
		cm.Annotations[v1alpha1.AnnotationContentDigest] = ContentDigest(cm.Data, cm.BinaryData)
	}
	return p, nil
}

// referTo returns how the routing file names a ring.
func referTo(ref Ref, slot routing.Slot, r *Ring, revision int64) routing.Reference {
	reference := routing.NewReference(slot, r.Digest(), r.Algorithm().Version.String(), len(r.Chunks()))
	if ref.UID != "" { // Without a cluster nobody counts revisions.
		reference.Revision = revision
	}
	return reference
}

func (p *Publication) addRing(ref Ref, slot routing.Slot, count int, r *Ring, revision int64) {
	p.add(ref, slot, count, r.Chunks(), map[string]string{
		v1alpha1.AnnotationDigest:   r.Digest(),
		v1alpha1.AnnotationRevision: strconv.FormatInt(revision, 10),
		v1alpha1.AnnotationEncoding: string(r.Encoding()),
	})
}

// add appends the ConfigMaps of a slot: those with a part of its content, and the others up to count, which are empty.
func (p *Publication) add(ref Ref, slot routing.Slot, count int, parts [][]byte, annotations map[string]string) {
	for chunk := range count {
		cm := ConfigMap{Name: ChunkName(ref.Name, slot, chunk), Annotations: map[string]string{}}
		content := []byte{}
		if chunk < len(parts) {
			content = parts[chunk]
			maps.Copy(cm.Annotations, annotations)
		}
		cm.BinaryData = map[string][]byte{slot.ChunkFileName(chunk): content}
		p.ConfigMaps = append(p.ConfigMaps, cm)
	}
}

// Files returns what a pod that mounts all ConfigMaps of the publication finds, by file name.
func (p *Publication) Files() map[string][]byte {
	files := map[string][]byte{}
	for _, cm := range p.ConfigMaps {
		for name, text := range cm.Data {
			files[name] = []byte(text)
		}
		maps.Copy(files, cm.BinaryData)
	}
	return files
}

// FileNames returns the names of the files in the order in which they are written.
func (p *Publication) FileNames() []string {
	var names []string
	for _, cm := range p.ConfigMaps { // Each has one file.
		names = slices.AppendSeq(names, maps.Keys(cm.Data))
		names = slices.AppendSeq(names, maps.Keys(cm.BinaryData))
	}
	return names
}

// ContentDigest returns "sha256:" and the SHA-256 of a ConfigMap's payload in lower-case hex: of the number of entries of
// data, then each key and value in order of the keys, then the same of binaryData. Numbers are 64 bits, little-endian;
// keys and values follow their lengths, so that no two payloads run together.
func ContentDigest(data map[string]string, binaryData map[string][]byte) string {
	h := sha256.New()
	addNumber(h, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		addBytes(h, []byte(key))
		addBytes(h, []byte(data[key]))
	}
	addNumber(h, len(binaryData))
	for _, key := range slices.Sorted(maps.Keys(binaryData)) {
		addBytes(h, []byte(key))
		addBytes(h, binaryData[key])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// A hash never returns an error.
func addNumber(h hash.Hash, n int) {
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func addBytes(h hash.Hash, b []byte) {
	addNumber(h, len(b))
	_, _ = h.Write(b)
}
