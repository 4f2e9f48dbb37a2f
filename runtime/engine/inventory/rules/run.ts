/** A flash as its machine reports it: the posts, and the run that the server keeps. */
import { z } from 'zod'
import type { Mac } from '#kit/net/rules/mac.ts'
import { plainWords } from '#kit/foundation/printable.ts'

/** In order; a client leaves out what it does not do. */
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

/** `lost`: the machine has stopped responding, or began another run. */
export const RUN_RESULTS = ['done', 'failed', 'cancelled', 'lost'] as const
export type RunResult = (typeof RUN_RESULTS)[number]

const RUN_MODES = ['flash', 'interactive', 'capture'] as const
export type RunMode = (typeof RUN_MODES)[number]

/**
 * The wish to write only what differs. `mostly-different`: reading the disk would only cost time;
 * `no-index`: nothing says what the frames hold; `untrusted`: the image has a digest, its index has
 * none.
 */
const DELTA_STATES = ['compared', 'mostly-different', 'no-index', 'untrusted'] as const
export type DeltaState = (typeof DELTA_STATES)[number]

export const MAX_PROGRESS_BYTES = 16 * 1024
export const MAX_LOG_BYTES = 256 * 1024

export const RunIdSchema = z.string().regex(/^[A-Za-z0-9-]{8,64}$/, 'not a run id')

const bytes = z.int().min(0)
const MAX_SECONDS = 365 * 24 * 3600

/** Only descriptive: too long is cut, and invalid values are dropped. */
const exactly = (most: number, clean = (text: string) => text) =>
  z
    .string()
    .transform((text) => clean(text.slice(0, most)))
    .nullish()
    .catch(null)
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

const MAX_SOURCES = 16
const SourceSchema = z.object({
  name: z.string().transform((text) => plainWords(text.slice(0, 255))),
  bytes,
  trouble: words(200),
})

/** Body of `POST /pxe/{mac}/progress`. Unknown fields are dropped: a newer client may send more. */
export const ProgressSchema = z.object({
  run: RunIdSchema,
  phase: z.enum(RUN_PHASES),
  bytes_read: bytes,
  /** In phase `verify`, read back. */
  bytes_written: bytes,
  /** Part of `bytes_written` that was on the disk already; absent: not compared. */
  bytes_kept: size,
  /** Absent: all is written. */
  delta: z.enum(DELTA_STATES).nullish().catch(null),
  /** Null: the image's size is unknown before its end. */
  total_bytes: bytes.nullable(),
  /** Bytes per second. */
  rate: z.number().min(0).max(Number.MAX_SAFE_INTEGER).nullable(),
  eta_seconds: z.number().min(0).max(MAX_SECONDS).nullable().catch(null),
  mode: z.enum(RUN_MODES).nullish(),
  image: ImageSchema.nullish().catch(null),
  sources: z.array(SourceSchema).max(MAX_SOURCES).nullish().catch(null),
  disk: DiskSchema.nullish().catch(null),
  bottleneck: words(64),
  verified: z.boolean().nullish(),
  warning: words(500),
  reason: words(500),
})
export type RunProgress = z.output<typeof ProgressSchema>
export type ProgressPost = z.input<typeof ProgressSchema>

const time = z.iso.datetime()
const text = z.string().nullable()

/** `booted`: proved; `seen`: its address answered; `failed`: it asked for its boot script. */
export const PROOF_STATES = ['watching', 'booted', 'seen', 'not-seen', 'failed'] as const
export type ProofState = (typeof PROOF_STATES)[number]

const ProofSchema = z.object({
  state: z.enum(PROOF_STATES),
  /** `call`: the one-time address; `ssh`: a new host key; `network`: it answered; null: nothing. */
  how: z.enum(['call', 'ssh', 'network']).nullable(),
  /** The end of the flash, and of the wait. */
  since: time,
  until: time,
  /** Seconds from the end of the flash; null: nothing was seen. */
  seconds: z.number().nullable(),
  /** Network boots since the flash; the first one is expected. */
  contacts: z.int(),
  first_contact_at: time.nullable().default(null),
  last_contact_at: time.nullable(),
  /** Nothing answered since its last contact; null: not seen. */
  silent_at: time.nullable(),
  /** Its address answered again; null: it did not. */
  network_at: time.nullable(),
  /** Of the one-time address; null: the new system has none. */
  call_made_at: time.nullable(),
  /** Digests of SSH host keys; null: unknown, so that a key proves nothing. */
  keys_before: z.array(z.string().max(64)).max(64).nullable().default(null),
  /** Such a live system may have ports of its own. */
  is_elsewhere: z.boolean().default(false),
  reason: text,
})
export type Proof = Readonly<z.output<typeof ProofSchema>>

/** As stored. Every text comes from the machine itself and is hostile. */
export const RunSchema = z.object({
  /** Made by the client for each attempt; unique within its machine. */
  id: z.string(),
  mac: z.string(),
  mode: z.enum(RUN_MODES),
  /** False: the client only said that it was done, and no bytes are known. */
  reported: z.boolean(),
  phase: z.enum(RUN_PHASES),
  /** Null: it goes on. */
  result: z.enum(RUN_RESULTS).nullable(),
  stalled: z.boolean(),
  /** By the server's clock; null: unknown. */
  started_at: time.nullable(),
  updated_at: time,
  ended_at: time.nullable(),
  bytes_read: bytes,
  bytes_written: bytes,
  /** Null: not compared. */
  bytes_kept: bytes.nullable(),
  /** Null: all is written. */
  delta: z.enum(DELTA_STATES).nullable(),
  total_bytes: bytes.nullable(),
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
  /** By source of the image; null: it has one, or nobody said. */
  sources: z.array(z.object({ name: z.string(), bytes, trouble: text })).nullable(),
  disk: z
    .object({ path: text, model: text, serial: text, size_bytes: bytes.nullable(), tran: text })
    .nullable(),
  bottleneck: text,
  verified: z.boolean().nullable(),
  warning: text,
  reason: text,
  /** Of the server that it last reported to, where a site has several; null: one. */
  server: text,
  armed_by: z.object({ actor: z.string(), ip: text, at: time }).nullable(),
  steps: z.array(z.object({ phase: z.enum(RUN_PHASES), at: time })),
  has_log: z.boolean(),
  /** What came before, by the server's clock; null: unknown. */
  stamps: z
    .object({
      power_on_at: time.nullable(),
      script_at: time.nullable(),
      kernel_at: time.nullable(),
      initrd_at: time.nullable(),
      /** As the live system reported: reset of the hardware, start of its kernel, of its system. */
      reset_at: time.nullable(),
      start_at: time.nullable(),
      system_at: time.nullable(),
      plan_at: time.nullable(),
    })
    .nullable(),
  /** Null: nobody waits for the new system. */
  proof: ProofSchema.nullable(),
  /** The machine's order; absent: unknown. Not on the wire. */
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

export type RunOrigin = Pick<Run, 'mac' | 'mode' | 'image' | 'disk' | 'armed_by' | 'order'> &
  Partial<Pick<Run, 'stamps'>>

/** `now`: ISO 8601; `nextRun` (run-transition.ts) applies the first post. */
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

/** Reported at its end alone. `plannedAt`: ISO 8601 of its plan; null: unknown. */
export const createSilentRun = (id: string, origin: RunOrigin, plannedAt: string | null): Run => ({
  ...createRun(id, origin, plannedAt ?? ''),
  reported: false,
  started_at: plannedAt,
  steps: plannedAt === null ? [] : [{ phase: 'started', at: plannedAt }],
})
