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

// ConfigMap is what one published ConfigMap shall hold. Labels and owner are the same for all and not part of it.
type ConfigMap struct {
	Name        string
	Annotations map[string]string
	Data        map[string]string
	BinaryData  map[string][]byte
}

// SlotName returns the name of the ConfigMap of a slot.
func SlotName(ringName string, slot routing.Slot) string { return ringName + "-" + string(slot) }

// RoutingName returns the name of the ConfigMap that holds routing.json.
func RoutingName(ringName string) string { return ringName + "-routing" }

// Publication is everything that is published for one ring.
type Publication struct {
	Revision   int64
	Generation int64
	// RoutingDigest is the digest of routing.json.
	RoutingDigest string
	// ConfigMaps are in the order in which they are written: routing comes last, so that it never names a snapshot that is
	// not there.
	ConfigMaps []ConfigMap
}

// Ref names the HashRing that something is published for. UID is empty where there is no cluster.
type Ref struct {
	Namespace, Name string
	UID             types.UID
}

// Render returns the ConfigMaps of a ring. Both slots are always among them: the empty one holds a marker, so that pods
// can mount all of them and none has to be optional.
func Render(ref Ref, d *Desired, revision, generation int64) (*Publication, error) {
	file := routing.File{
		APIVersion: routing.APIVersion,
		Ring:       ref.Namespace + "/" + ref.Name,
		UID:        string(ref.UID),
		Generation: generation,
		Stable:     routing.Reference{Slot: routing.SlotA, Digest: d.Ring.Digest(), Version: d.Ring.Algorithm().Version.String()},
		Addresses:  d.Addresses,
	}
	text, err := file.Encode()
	if err != nil {
		return nil, refusef(v1alpha1.ReasonSnapshotTooLarge, "%v", err) // The rest of the file is ours, and valid.
	}
	slotA := ConfigMap{
		Name: SlotName(ref.Name, routing.SlotA),
		Annotations: map[string]string{
			v1alpha1.AnnotationDigest:   d.Ring.Digest(),
			v1alpha1.AnnotationRevision: strconv.FormatInt(revision, 10),
			v1alpha1.AnnotationEncoding: v1alpha1.EncodingPoints,
		},
		BinaryData: map[string][]byte{routing.SlotA.FileName(): d.Ring.Snapshot()},
	}
	slotB := ConfigMap{
		Name:        SlotName(ref.Name, routing.SlotB),
		Annotations: map[string]string{},
		BinaryData:  map[string][]byte{routing.SlotB.FileName(): ring.EmptySlot()},
	}
	route := ConfigMap{
		Name:        RoutingName(ref.Name),
		Annotations: map[string]string{v1alpha1.AnnotationGeneration: strconv.FormatInt(generation, 10)},
		Data:        map[string]string{routing.FileName: string(text)},
	}
	p := &Publication{
		Revision: revision, Generation: generation, RoutingDigest: ring.Digest(text),
		ConfigMaps: []ConfigMap{slotB, slotA, route},
	}
	for i := range p.ConfigMaps {
		cm := &p.ConfigMaps[i]
		cm.Annotations[v1alpha1.AnnotationContentDigest] = ContentDigest(cm.Data, cm.BinaryData)
	}
	return p, nil
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
