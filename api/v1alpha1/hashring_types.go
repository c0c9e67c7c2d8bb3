// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HashRing is a consistent-hash ring: the operator builds it once from spec and publishes its bytes in the ConfigMaps
// <name>-a, <name>-b and <name>-routing, from which every reader finds the same owner for a key.
//
// The name of a HashRing has at most 63 characters, because it becomes a label value on what is published.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=hashrings,singular=hashring,scope=Namespaced,shortName=hring,categories=ringwright
// +kubebuilder:printcolumn:name="Algorithm",type=string,JSONPath=`.spec.algorithm.version`,description="Algorithm version that spec asks for"
// +kubebuilder:printcolumn:name="Placed",type=integer,JSONPath=`.status.backends.placed`,description="Backends with points on the published ring"
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.backends.total`,description="Backends in the published ring, drained ones included"
// +kubebuilder:printcolumn:name="Points",type=integer,JSONPath=`.status.snapshot.points`,description="Points on the published ring"
// +kubebuilder:printcolumn:name="Max/Avg",type=string,JSONPath=`.status.balance.maxOverAverage`,description="Largest share of a backend, relative to its weight's share"
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.active.revision`,description="Revision that is published"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the published ring is what spec asks for"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.status.active.digest`,description="SHA-256 of the published snapshot"
// +kubebuilder:printcolumn:name="Candidate",type=string,priority=1,JSONPath=`.status.candidate.digest`,description="SHA-256 of the snapshot that waits"
// +kubebuilder:printcolumn:name="Movement",type=string,priority=1,JSONPath=`.status.candidate.movement`,description="Part of the key space that the candidate moves"
// +kubebuilder:printcolumn:name="Migration",type=string,priority=1,JSONPath=`.status.migration.name`,description="RingMigration that has the ring"
// +kubebuilder:printcolumn:name="Consumers",type=integer,priority=1,JSONPath=`.status.consumers.total`,description="Pods that read the ring"
// +kubebuilder:printcolumn:name="Current",type=integer,priority=1,JSONPath=`.status.consumers.current`,description="Pods that have what is published"
// +kubebuilder:printcolumn:name="Identity",type=string,priority=1,JSONPath=`.spec.identity`,description="What a backend's points are computed from"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",messageExpression="'metadata.name must have at most 63 characters, because it becomes a label value; got %d'.format([self.metadata.name.size()])"
type HashRing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the ring that is asked for. The operator never writes it.
	// +required
	Spec HashRingSpec `json:"spec"`

	// status is what the operator published and what it found on the way.
	// +optional
	// +default={}
	Status HashRingStatus `json:"status,omitzero"`
}

// HashRingList is a list of HashRings.
//
// +kubebuilder:object:root=true
type HashRingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HashRing `json:"items"`
}

// HashRingSpec is the ring that is asked for. Every field but backends has a default that most rings keep.
//
// +kubebuilder:validation:XValidation:rule="self.identity != 'Address' || !has(self.backends) || self.backends.all(b, isIP(b.address))",fieldPath=".backends",messageExpression="self.backends.transformList(i, b, !isIP(b.address), 'with identity Address, backends[%d].address must be an IP address without brackets; backend %s has %s'.format([i, b.name, b.address]))[0]"
// +kubebuilder:validation:XValidation:rule="self.identity != 'NGINX' || !has(self.backends) || self.backends.all(b, !b.address.contains(':') || b.address.startsWith('['))",fieldPath=".backends",messageExpression="self.backends.transformList(i, b, b.address.contains(':') && !b.address.startsWith('['), 'with identity NGINX, backends[%d].address must be an IPv4 address, an IPv6 address in brackets or a DNS name; backend %s has %s'.format([i, b.name, b.address]))[0]"
// +kubebuilder:validation:XValidation:rule="self.identity != 'Name' || !has(self.backends) || self.backends.all(b, !b.address.startsWith('['))",fieldPath=".backends",messageExpression="self.backends.transformList(i, b, b.address.startsWith('['), 'with identity Name, backends[%d].address must be an IP address without brackets or a DNS name; backend %s has %s'.format([i, b.name, b.address]))[0]"
// +kubebuilder:validation:XValidation:rule="self.identity == 'NGINX' || !has(self.backends) || self.backends.all(b, has(b.port))",fieldPath=".backends",reason=FieldValueRequired,messageExpression="self.backends.transformList(i, b, !has(b.port), 'with identity %s, backends[%d].port must be set; backend %s has none'.format([self.identity, i, b.name]))[0]"
// +kubebuilder:validation:XValidation:rule="!has(self.algorithm) || self.algorithm.version != 'V3' || (has(self.views) && self.views == 'Listed') || !has(self.features) || self.features.size() <= 6",fieldPath=".views",messageExpression="'with version V3 and views %s, features must have at most 6 items, which make 64 views; got %d: set views to Listed and name the views in viewList'.format([has(self.views) ? self.views : 'absent, which means All', self.features.size()])"
// +kubebuilder:validation:XValidation:rule="!has(self.viewList) || self.viewList.size() == 0 || (has(self.views) && self.views == 'Listed')",fieldPath=".viewList",reason=FieldValueForbidden,messageExpression="'viewList is read with views Listed only; views is %s, viewList has %d items'.format([has(self.views) ? self.views : 'absent, which means All', self.viewList.size()])"
// +kubebuilder:validation:XValidation:rule="!has(self.viewList) || self.viewList.all(v, v.all(n, has(self.features) && self.features.exists(f, f.name == n)))",fieldPath=".viewList",messageExpression="self.viewList.transformList(i, v, !v.all(n, has(self.features) && self.features.exists(f, f.name == n)), 'viewList[%d] names %s, which is not among features'.format([i, v.filter(n, !has(self.features) || !self.features.exists(f, f.name == n))[0]]))[0]"
// +kubebuilder:validation:XValidation:rule="!has(self.viewList) || self.viewList.all(v, self.viewList.exists_one(w, sets.equivalent(v, w)))",fieldPath=".viewList",messageExpression="self.viewList.transformList(i, v, !self.viewList.exists_one(w, sets.equivalent(v, w)), 'viewList[%d] is a set of features that is there twice: %s'.format([i, v.join(', ')]))[0]"
// +kubebuilder:validation:XValidation:rule="!has(self.backendsFrom) || self.identity == 'Name' || self.backendsFrom.all(s, !has(s.identity) || s.identity == 'Address')",fieldPath=".backendsFrom",messageExpression="self.backendsFrom.transformList(i, s, has(s.identity) && s.identity != 'Address', 'with identity %s, whose points are computed from addresses, backendsFrom[%d].identity must be Address; got %s: set identity of the HashRing to Name'.format([self.identity, i, s.identity]))[0]"
type HashRingSpec struct {
	// algorithm says how the points of the ring are computed. A change of any of its fields moves keys between backends
	// that stay; see the fields for how many.
	// +optional
	// +default={}
	Algorithm Algorithm `json:"algorithm,omitzero"`

	// identity is what the points of a backend are computed from: Address (the default), NGINX or Name. It cannot be
	// changed, because every key would move; make a new HashRing instead.
	// +optional
	// +default="Address"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,messageExpression="'identity cannot be changed, because every key would move; it is %s, got %s'.format([oldSelf, self])"
	Identity Identity `json:"identity,omitempty"`

	// backends are the servers on the ring, at most 4096, each name once. Their order has no effect. Adding or removing
	// one moves only the keys that it gains or leaves, and with V3 a few besides, to keep the others within their limit; without any backend of a weight above 0 the last good ring stays
	// published.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:XValidation:rule="self.transformMapEntry(i, b, {b.name: true}).size() == self.size()",message="the names of backends must be unique"
	Backends []Backend `json:"backends,omitempty"`

	// backendsFrom are Services whose endpoints are backends too, at most 16. A backend that several of them have is one. They come and go as membership
	// says, and the order of the sources has no effect. The first ring waits until all of them can be read.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	BackendsFrom []BackendSource `json:"backendsFrom,omitempty"`

	// features are named selectors over the labels of backends, at most 12. A reader that asks for features is answered
	// only with backends that have all of them. They add one bit a backend to the snapshot, and with V3 what is trimmed in
	// their views; they move no key of readers that do not ask for them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=12
	Features []Feature `json:"features,omitempty"`

	// views says for which sets of features V3 trims the ring: All (what an absent field means), for every combination of
	// the features, of which there may be 6 at most, as they make 64 views; or Listed, for those in viewList. The view of all
	// backends is always among them. A set of features that is not is answered all the same, from the ring as it is without
	// trimming. V1 and V2 answer every set exactly and need no views: with them the field has no effect, which
	// status.warnings says, so that a change of version is one edit. A view that is added or dropped moves keys of its own
	// readers only.
	// +optional
	Views ViewSelection `json:"views,omitempty"`

	// viewList are the sets of features that V3 trims the ring for with views Listed, at most 64, each of 1 to 12 names of
	// features and each set once. Without it only the view of all backends is trimmed. With views All it is refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ViewList []View `json:"viewList,omitempty"`

	// membership says when backends are placed on the ring and removed from it.
	// +optional
	// +default={}
	Membership Membership `json:"membership,omitzero"`

	// changePolicy says how a change of algorithm, and one that moves more than membership.maxMovement, is carried out: Migrate
	// (the default) makes it the candidate, which status.candidate shows with what it would move, and which waits; Immediate
	// publishes it. The candidate is dropped when spec asks for the published ring again.
	// +optional
	// +default="Migrate"
	ChangePolicy ChangePolicy `json:"changePolicy,omitempty"`

	// pinnedRevision holds the ring at an earlier revision, at least 1: what that was is published again, whatever the rest of
	// spec says, and stays until the field is taken away. It goes past every delay, hold and limit. A revision that is no
	// longer kept is refused. Absent, nothing is pinned.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PinnedRevision *int64 `json:"pinnedRevision,omitempty"`

	// consumers are the pods that read the ring. The operator asks them what they have and tells it in status.consumers and
	// condition Applied. Absent, nobody is asked. It has no effect on placement, nor on what is published.
	// +optional
	Consumers *Consumers `json:"consumers,omitempty"`

	// historyLimit is how many revisions are kept beside the published one, 1 to 100, default 10. A pinned revision is kept in
	// any case. It has no effect on placement.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// publication says how the ring reaches its readers. It has no effect on placement.
	// +optional
	// +default={}
	Publication Publication `json:"publication,omitzero"`

	// deletion says what becomes of the published files when the HashRing is deleted.
	// +optional
	// +default={}
	Deletion Deletion `json:"deletion,omitzero"`
}

// Algorithm is an algorithm version and its parameters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.version) || self.version != 'V1' || self.pointsPerWeight == 160",fieldPath=".pointsPerWeight",messageExpression="'pointsPerWeight must be 160 with version V1, as in NGINX; got %d'.format([self.pointsPerWeight])"
// +kubebuilder:validation:XValidation:rule="!has(self.weightUnit) || self.weightUnit == 1 || (has(self.version) && self.version == 'V3')",fieldPath=".weightUnit",messageExpression="'weightUnit must be 1 with version %s, whose points it would not divide; got %d'.format([self.version, self.weightUnit])"
type Algorithm struct {
	// version is the algorithm version: V1 has the owners of NGINX's "hash … consistent" and of pingora-ketama v1; V2
	// (the default) has those of pingora-ketama v2, with an adjustable number of points; V3 has the points of V2 but for a
	// few that it trims, so that no backend has more than maxImbalance above its share, in every one of views. With 160
	// points per weight V1 and V2 place every key alike, so that a change between them alone moves none; one to V3 moves
	// what trimming does, about 3% of the key space with 160 points.
	// +optional
	// +default="V2"
	Version AlgorithmVersion `json:"version,omitempty"`

	// pointsPerWeight is the number of points on the ring for each unit of a backend's weight, 1 to 100000, default 160;
	// V1 takes 160 only. More points balance better and make the snapshot larger, by 3 to 4 bytes a point. V3 balances by
	// trimming: 40 are plenty for it, and it takes 1048576 points in all. A change moves the share that the added or removed points own: from 160 to 80 nearly
	// half of the key space.
	// +optional
	// +default=160
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	PointsPerWeight int32 `json:"pointsPerWeight,omitempty"`

	// weightUnit is the weight that gets pointsPerWeight points, 1 to 1000000, default 1: a backend has pointsPerWeight ×
	// weight / weightUnit points, rounded, and 4 at the least. It lets weights be what they are measured in, such as 625 for
	// a disk of 625 GB with a weightUnit of 625. V1 and V2 take 1 only: their points are not divided, and a ring of so many
	// more points is not what anybody wants who changes the version. A change does what one of pointsPerWeight does.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	WeightUnit int32 `json:"weightUnit,omitempty"`

	// maxImbalance is how far above its weight's share of the keys V3 lets a backend be in any of views, in percent with at
	// most 4 decimals, "0.0001%" to "100%"; "1%" where it is absent. Where that is out of reach, as it can be in a view of few
	// backends or points, the ring is published with what can be reached, and status.warnings names view, figure and limit. V1
	// and V2 do not trim: with them the field has no effect, which status.warnings says, so that a change of version is one
	// edit. A change of it moves the arcs of the points that are trimmed or given back.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(0|[1-9][0-9]{0,2})([.][0-9]{1,4})?%$') && double(self.replace('%', '')) >= 0.0001 && double(self.replace('%', '')) <= 100.0`,messageExpression="'maxImbalance must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got ' + self"
	MaxImbalance string `json:"maxImbalance,omitempty"`
}

// AlgorithmVersion names an algorithm. The placements of a version never change; a change of placement is a new one.
//
// +kubebuilder:validation:Enum=V1;V2;V3
type AlgorithmVersion string

const (
	// AlgorithmV1 has 160 points per weight and the owners of NGINX and of pingora-ketama v1, wherever those are defined.
	AlgorithmV1 AlgorithmVersion = "V1"

	// AlgorithmV2 has an adjustable number of points per weight and the owners of pingora-ketama v2.
	AlgorithmV2 AlgorithmVersion = "V2"

	// AlgorithmV3 has the points of V2, trimmed to a limit of imbalance in every declared view.
	AlgorithmV3 AlgorithmVersion = "V3"
)

// ViewSelection says which views of a V3 ring are trimmed.
//
// +kubebuilder:validation:Enum=All;Listed
type ViewSelection string

const (
	// ViewsAll trims every combination of the features.
	ViewsAll ViewSelection = "All"

	// ViewsListed trims those in spec.viewList.
	ViewsListed ViewSelection = "Listed"
)

// View is a set of features by their names. Its backends are those that have all of them.
//
// +listType=set
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=12
// +kubebuilder:validation:items:MinLength=1
// +kubebuilder:validation:items:MaxLength=63
type View []string

// Identity says what the points of a backend are computed from.
//
// +kubebuilder:validation:Enum=Address;NGINX;Name
type Identity string

const (
	// IdentityAddress computes points from the IP address and the port, as pingora does. The spelling of an IPv6 address
	// has no effect: it is brought into its canonical form.
	IdentityAddress Identity = "Address"

	// IdentityNGINX computes points from the text of address and port, as an NGINX configuration spells them.
	IdentityNGINX Identity = "NGINX"

	// IdentityName computes points from the backend's name, so that a backend keeps its keys when its address changes.
	IdentityName Identity = "Name"
)

// Backend is one server of a ring.
type Backend struct {
	// name identifies the backend in this HashRing: 1 to 253 letters, digits, dots, dashes and underscores, starting and
	// ending with a letter or digit. With identity Name a change moves all keys of the backend; otherwise none.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// address is the IP address or the DNS name of the backend, 1 to 253 characters, without a port. With identity
	// Address it is an IP address without brackets; with NGINX it is spelled as in NGINX's configuration, IPv6 in
	// brackets; with Name it is an IP address without brackets or a DNS name. IP addresses have neither a zone nor the
	// IPv4-mapped form. With identity Address and NGINX a change moves all keys of the backend; with Name none.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('[') || (self.endsWith(']') && self.contains(':') && isIP(self.substring(1, self.size() - 1)))",messageExpression="'address in brackets must be an IPv6 address without a zone; got ' + self"
	// +kubebuilder:validation:XValidation:rule=`self.startsWith('[') || isIP(self) || (self.matches(r'^(\w([\w-]*\w)?[.])*\w([\w-]*\w)?$') && !self.matches(r'(^|[.])\d+$'))`,messageExpression="'address must be an IP address without port and zone, or a DNS name; got ' + self"
	Address string `json:"address"`

	// port is the TCP or UDP port of the backend, 1 to 65535. Identity Address and Name need it; with NGINX an absent port
	// is an empty port text, as in NGINX's configuration. With identity Address and NGINX a change moves all keys of the
	// backend; with Name none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// weight is the backend's part of the keys relative to the other backends', 0 to 1000000, default 1. A backend has
	// pointsPerWeight points for each unit, with V3 for each weightUnit. 0 drains it: it stays in the snapshot's table and
	// owns nothing. A change moves keys to or from this backend, and with V3 a few between others.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// labels are what features select by, at most 32, keys of at most 317 and values of at most 63 characters. A change
	// moves keys only for readers that ask for a feature which the backend gains or loses by it.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, v, k.size() <= 317 && v.size() <= 63)",message="the keys of labels must have at most 317 characters and the values at most 63"
	Labels map[string]string `json:"labels,omitempty"`

	// zone is where the backend runs: at most 63 letters, digits, dots, dashes and underscores. Readers
	// are told it with each owner, which does not depend on it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	Zone string `json:"zone,omitempty"`
}

// Feature is a named label selector over the backends of a ring.
type Feature struct {
	// name is what readers ask by: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or
	// digit. A change moves no key; readers that ask for the old name are refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// selector says which backends have the feature, by their labels: at most 32 matchLabels and 32 matchExpressions, at
	// least one of both. An unknown operator, or values that do not fit it, are reported by condition Ready with reason
	// InvalidSpec. A change moves the keys of readers that ask for the feature from and to the backends which lose and
	// gain it.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",reason=FieldValueRequired,message="selector must have matchLabels or matchExpressions; an empty one would select every backend"
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.size() <= 32) && (!has(self.matchExpressions) || self.matchExpressions.size() <= 32)",message="selector must have at most 32 matchLabels and at most 32 matchExpressions"
	Selector metav1.LabelSelector `json:"selector"`
}

// Publication says how a ring reaches its readers.
type Publication struct {
	// minInterval is the least time between two publications, 0s to 1h, default 5s. Changes within it are coalesced, and
	// the newest state is always published in the end. It has no effect on placement.
	// +optional
	// +default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('1h')",messageExpression="'minInterval must be at most 1h; got %s'.format([self])"
	MinInterval *metav1.Duration `json:"minInterval,omitempty"`

	// chunks is how many ConfigMaps the snapshot may take in each slot, 1 to 16, default 1: <name>-a, <name>-a-1 and so on,
	// of 1048576 bytes each. All of them always exist, empty where they are not needed, so that pods can mount them. Pods
	// have to mount a new one before the ring grows into it, and must no longer mount one that is about to be taken away.
	// It has no effect on placement.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Chunks int32 `json:"chunks,omitempty"`

	// encoding is how the snapshot is written: Points, with every point of the ring, which readers search as they are;
	// Recipe, without the points, which readers build again and check; or Auto (the default): Points while that fits into
	// the chunks, otherwise Recipe. Points takes 3 to 4 bytes a point, up to about 5.5 million points in 16 chunks; Recipe
	// takes none, and is for rings of up to 268435456 points, with V3 1048576, for which each reader needs time and memory. A change gives
	// the snapshot another digest and with that the ring a new revision; it has no effect on placement.
	// +optional
	// +default="Auto"
	Encoding Encoding `json:"encoding,omitempty"`
}
