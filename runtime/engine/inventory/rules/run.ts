/** A flash as its machine reports it: the posts, and the run that the server keeps. */
import { z } from 'zod'
import type { Mac } from '../../../kit/net/rules/mac.ts'
import { plainWords } from '../../../kit/foundation/printable.ts'

/**
 * The phases in the order in which a flash goes through them; a client leaves out what it does not
 * do.
 */
export const RUN_PHASES = [
  'started',
  'write',
  'verify',
  'sync',
  'uefi',
  'done',
  'failed',
  'cancelled',
] as const
export type RunPhase = (typeof RUN_PHASES)[number]

/** How a run ended; `lost`: the machine was not heard of any more, or began another run. */
export const RUN_RESULTS = ['done', 'failed', 'cancelled', 'lost'] as const
export type RunResult = (typeof RUN_RESULTS)[number]

const RUN_MODES = ['flash', 'interactive', 'capture'] as const
export type RunMode = (typeof RUN_MODES)[number]

/**
 * What becomes of the wish to write only what differs. `compared`: it is done; `mostly-different`: the
 * disk holds something else, so reading it would only cost time; `no-index`: nothing says what the
 * frames hold; `untrusted`: the image has a digest, its index has none.
 */
const DELTA_STATES = ['compared', 'mostly-different', 'no-index', 'untrusted'] as const
export type DeltaState = (typeof DELTA_STATES)[number]

/** The most bytes that a post about progress may have. */
export const MAX_PROGRESS_BYTES = 16 * 1024
/** The most bytes of a log; its tail is what is kept. */
export const MAX_LOG_BYTES = 256 * 1024

export const RunIdSchema = z.string().regex(/^[A-Za-z0-9-]{8,64}$/, 'not a run id')

const bytes = z.int().min(0)
const MAX_SECONDS = 365 * 24 * 3600

/** What only describes: too long is cut, and what cannot be it is as good as none. */
const exactly = (most: number, clean = (text: string) => text) =>
  z
    .string()
    .transform((text) => clean(text.slice(0, most)))
    .nullish()
    .catch(null)
/** A name, or why: people read it, on terminals as well. */
const words = (most: number) => exactly(most, plainWords)
const size = bytes.nullish().catch(null)

const ImageSchema = z.object({
  name: z.string().transform((text) => plainWords(text.slice(0, 255))),
  src: exactly(2048),
  ref: exactly(64),
  sha256: exactly(64),
  format: words(32),
  size_bytes: size,
})
const DiskSchema = z.object({
  path: z.string().transform((text) => text.slice(0, 255)),
  model: words(128),
  serial: exactly(256),
  size_bytes: size,
  tran: words(32),
})

/** The most sources of an image that a run names. */
const MAX_SOURCES = 16
const SourceSchema = z.object({
  name: z.string().transform((text) => plainWords(text.slice(0, 255))),
  bytes,
  trouble: words(200),
})

/** Body of `POST /pxe/{mac}/progress`. Unknown fields are left out: a newer client may say more. */
export const ProgressSchema = z.object({
  run: RunIdSchema,
  phase: z.enum(RUN_PHASES),
  bytes_read: bytes,
  /** The bytes that were written to the disk; in phase `verify`, those that were read back. */
  bytes_written: bytes,
  /** The part of `bytes_written` that was on the disk already; absent where it was not compared. */
  bytes_kept: size,
  /** What became of the wish to write only what differs; absent where nobody had it. */
  delta: z.enum(DELTA_STATES).nullish().catch(null),
  /** What `bytes_written` counts up to; null where the image's size is not known before its end. */
  total_bytes: bytes.nullable(),
  /** Bytes per second over the last moments. */
  rate: z.number().min(0).max(Number.MAX_SAFE_INTEGER).nullable(),
  eta_seconds: z.number().min(0).max(MAX_SECONDS).nullable().catch(null),
  mode: z.enum(RUN_MODES).nullish(),
  image: ImageSchema.nullish().catch(null),
  /** What came from each source of the image, and why it was left; absent where it has one. */
  sources: z.array(SourceSchema).max(MAX_SOURCES).nullish().catch(null),
  disk: DiskSchema.nullish().catch(null),
  /** What holds it up: the network, the decoder, the disk. */
  bottleneck: words(64),
  verified: z.boolean().nullish(),
  /** What should be known of the image that was written, such as that it was cut off. */
  warning: words(500),
  reason: words(500),
})
export type RunProgress = z.output<typeof ProgressSchema>
/** A post about progress as a client writes it. */
export type ProgressPost = z.input<typeof ProgressSchema>

const time = z.iso.datetime()
const text = z.string().nullable()

/**
 * Whether the system that was flashed has booted. `booted`: proved; `seen`: something answered at its
 * address; `not-seen`: nothing was seen of it; `failed`: the machine asked for its boot script instead.
 */
export const PROOF_STATES = ['watching', 'booted', 'seen', 'not-seen', 'failed'] as const
export type ProofState = (typeof PROOF_STATES)[number]

const ProofSchema = z.object({
  state: z.enum(PROOF_STATES),
  /**
   * `call`: the new system called its one-time address; `ssh`: a host key that was not there before;
   * `network`: it answered; null: nothing was seen.
   */
  how: z.enum(['call', 'ssh', 'network']).nullable(),
  /** When the flash ended, and until when the new system is awaited. */
  since: time,
  until: time,
  /** Seconds from the end of the flash to what was seen; null: nothing was. */
  seconds: z.number().nullable(),
  /** Boots from the network since the flash; the first one is expected. */
  contacts: z.int(),
  first_contact_at: time.nullable().default(null),
  last_contact_at: time.nullable(),
  /** When nothing answered at its address since its last contact; null: that has not been seen. */
  silent_at: time.nullable(),
  /** When its address answered again after that; null: it did not. */
  network_at: time.nullable(),
  /** When the one-time address was made; null: the new system has none. */
  call_made_at: time.nullable(),
  /** Digests of the SSH host keys before the new system; null: not known, so a key proves nothing. */
  keys_before: z.array(z.string().max(64)).max(64).nullable().default(null),
  /** Whether its last network boot led elsewhere than to its disk: a live system may have ports of its own. */
  is_elsewhere: z.boolean().default(false),
  /** What was seen instead. */
  reason: text,
})
/** What is known of the first boot of a system that was flashed. */
export type Proof = Readonly<z.output<typeof ProofSchema>>

/** A run as it is stored. Every text comes from the machine itself and is hostile. */
export const RunSchema = z.object({
  /** Made by the client, new per attempt; unique within its machine. */
  id: z.string(),
  mac: z.string(),
  mode: z.enum(RUN_MODES),
  /** False: the client only said that it was done, and no bytes are known. */
  reported: z.boolean(),
  phase: z.enum(RUN_PHASES),
  /** Null: it goes on. */
  result: z.enum(RUN_RESULTS).nullable(),
  /** It goes on, and nothing was heard of it for a while. */
  stalled: z.boolean(),
  /** The start by the server's clock; null: nobody knows. */
  started_at: time.nullable(),
  updated_at: time,
  ended_at: time.nullable(),
  bytes_read: bytes,
  bytes_written: bytes,
  /** The part of these bytes that was on the disk already; null: not compared. */
  bytes_kept: bytes.nullable().default(null),
  /** What became of the wish to write only what differs; null: nobody had it. */
  delta: z.enum(DELTA_STATES).nullable().default(null),
  total_bytes: bytes.nullable(),
  /** How far the present phase is, and what it counts up to. */
  step_bytes: bytes,
  step_total: bytes.nullable(),
  rate: z.number().nullable(),
  eta_seconds: z.number().nullable(),
  image: z
    .object({
      name: z.string(),
      src: text,
      ref: text,
      sha256: text,
      format: text,
      size_bytes: bytes.nullable(),
    })
    .nullable(),
  /** What came from each source of the image, and why it was left; null: it has one, or nobody said. */
  sources: z
    .array(z.object({ name: z.string(), bytes, trouble: text.default(null) }))
    .nullable()
    .default(null),
  disk: z
    .object({ path: text, model: text, serial: text, size_bytes: bytes.nullable(), tran: text })
    .nullable(),
  bottleneck: text,
  verified: z.boolean().nullable(),
  /** What should be known of the image that was written; null: nothing. */
  warning: text.default(null),
  reason: text,
  /** The address of the server that heard of it last, where its site has several; null: it has one. */
  server: text.default(null),
  /** Who had the machine flashed, and from where. */
  armed_by: z.object({ actor: z.string(), ip: text, at: time }).nullable(),
  /** When each phase was first heard of. */
  steps: z.array(z.object({ phase: z.enum(RUN_PHASES), at: time })),
  /** Whether the machine sent its log. */
  has_log: z.boolean(),
  /** When what came before it happened, by the server's clock; null: nothing is known. */
  stamps: z
    .object({
      power_on_at: time.nullable().default(null),
      script_at: time.nullable().default(null),
      kernel_at: time.nullable().default(null),
      initrd_at: time.nullable().default(null),
      /** What the live system told of its start: when the hardware was reset, its kernel ran, its system began. */
      reset_at: time.nullable().default(null),
      start_at: time.nullable().default(null),
      system_at: time.nullable().default(null),
      plan_at: time.nullable().default(null),
    })
    .nullable()
    .default(null),
  /** Whether what was flashed has booted; null: nobody waits for it. */
  proof: ProofSchema.nullable().default(null),
  /** Which order of its machine it carries out; null or absent: not known. Not on the wire. */
  order: text.optional(),
})
type StoredRun = z.output<typeof RunSchema>

export type RunImage = Readonly<NonNullable<StoredRun['image']>>
export type RunDisk = Readonly<NonNullable<StoredRun['disk']>>
export type Armer = Readonly<NonNullable<StoredRun['armed_by']>>

export interface Run extends Readonly<
  Omit<StoredRun, 'mac' | 'image' | 'sources' | 'disk' | 'armed_by' | 'steps' | 'proof' | 'stamps'>
> {
  readonly mac: Mac
  readonly image: RunImage | null
  readonly sources: readonly Readonly<NonNullable<StoredRun['sources']>[number]>[] | null
  readonly disk: RunDisk | null
  readonly armed_by: Armer | null
  readonly proof: Proof | null
  readonly stamps: Readonly<NonNullable<StoredRun['stamps']>> | null
  readonly steps: readonly Readonly<StoredRun['steps'][number]>[]
}

/** What the server knows of a run that begins, from the machine's record. */
export type RunOrigin = Pick<Run, 'mac' | 'mode' | 'image' | 'disk' | 'armed_by' | 'order'> &
  Partial<Pick<Run, 'stamps'>>

/**
 * Creates a run that was first heard of at `now` (ISO 8601); the post itself is applied by
 * `nextRun` (run-transition.ts).
 */
export const createRun = (id: string, origin: RunOrigin, now: string): Run => ({
  ...origin,
  id,
  reported: true,
  phase: 'started',
  result: null,
  stalled: false,
  started_at: now,
  updated_at: now,
  ended_at: null,
  bytes_read: 0,
  bytes_written: 0,
  bytes_kept: null,
  delta: null,
  total_bytes: null,
  step_bytes: 0,
  step_total: null,
  rate: null,
  eta_seconds: null,
  bottleneck: null,
  verified: null,
  sources: null,
  warning: null,
  reason: null,
  server: null,
  steps: [{ phase: 'started', at: now }],
  has_log: false,
  proof: null,
  stamps: origin.stamps ?? null,
})

/**
 * Creates the run of a flash that a client reported at its end alone. `plannedAt` (ISO 8601) is
 * when it got its plan; null where nobody knows.
 */
export const createSilentRun = (id: string, origin: RunOrigin, plannedAt: string | null): Run => ({
  ...createRun(id, origin, plannedAt ?? ''),
  reported: false,
  started_at: plannedAt,
  steps: plannedAt === null ? [] : [{ phase: 'started', at: plannedAt }],
})
