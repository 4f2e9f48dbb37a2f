/** A flash as the machine that runs it tells it: what it posts, and the run that the server keeps. */
import { z } from 'zod'
import type { Mac } from './mac.ts'
import { plainWords } from '../foundation/printable.ts'

/** In the order in which a flash goes through them; a client leaves out what it does not do. */
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

export const RUN_MODES = ['flash', 'interactive'] as const
export type RunMode = (typeof RUN_MODES)[number]

/** Of a progress post. */
export const MAX_PROGRESS_BYTES = 16 * 1024
/** Of a log: its tail is what is kept. */
export const MAX_LOG_BYTES = 256 * 1024

export const RunIdSchema = z.string().regex(/^[A-Za-z0-9-]{8,64}$/, 'not a run id')

const bytes = z.int().min(0)
const MAX_SECONDS = 365 * 24 * 3600

/** A name, or why: people read it, on terminals as well. */
const words = (most: number) =>
  z
    .string()
    .transform((text) => plainWords(text.slice(0, most)))
    .nullish()
    .catch(null)
/** What only describes: too long is cut, and what cannot be it is as good as none. */
const exactly = (most: number) =>
  z
    .string()
    .transform((text) => text.slice(0, most))
    .nullish()
    .catch(null)
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

/** Body of `POST /pxe/{mac}/progress`. Unknown fields are left out: a newer client may say more. */
export const ProgressSchema = z.object({
  run: RunIdSchema,
  phase: z.enum(RUN_PHASES),
  bytes_read: bytes,
  /** Of the disk; in phase `verify`, how much was read back. */
  bytes_written: bytes,
  /** What `bytes_written` counts up to; null where the image's size is not known before its end. */
  total_bytes: bytes.nullable(),
  /** Bytes per second over the last moments. */
  rate: z.number().min(0).max(Number.MAX_SAFE_INTEGER).nullable(),
  eta_seconds: z.number().min(0).max(MAX_SECONDS).nullable().catch(null),
  mode: z.enum(RUN_MODES).nullish(),
  image: ImageSchema.nullish().catch(null),
  disk: DiskSchema.nullish().catch(null),
  /** What holds it up: the network, the decoder, the disk. */
  bottleneck: words(64),
  verified: z.boolean().nullish(),
  reason: words(500),
})
export type Progress = z.output<typeof ProgressSchema>
/** As a client writes it. */
export type ProgressPost = z.input<typeof ProgressSchema>

/** Every text comes from the machine itself and is hostile. */
export interface RunImage {
  readonly name: string
  readonly src: string | null
  readonly ref: string | null
  readonly sha256: string | null
  readonly format: string | null
  readonly size_bytes: number | null
}

export interface RunDisk {
  readonly path: string | null
  readonly model: string | null
  readonly serial: string | null
  readonly size_bytes: number | null
  readonly tran: string | null
}

/** Who had the machine flashed, and from where. */
export interface Armer {
  readonly actor: string
  readonly ip: string | null
  /** ISO time. */
  readonly at: string
}

interface RunStep {
  readonly phase: RunPhase
  /** ISO time at which it was first heard of. */
  readonly at: string
}

export interface Run {
  /** Made by the client, new per attempt; unique within its machine. */
  readonly id: string
  readonly mac: Mac
  readonly mode: RunMode
  /** False: the client only said that it was done, and no bytes are known. */
  readonly reported: boolean
  readonly phase: RunPhase
  /** Null: it goes on. */
  readonly result: RunResult | null
  /** It goes on, and nothing was heard of it for a while. */
  readonly stalled: boolean
  /** ISO times, by the server's clock; `started_at` null: nobody knows. */
  readonly started_at: string | null
  readonly updated_at: string
  readonly ended_at: string | null
  readonly bytes_read: number
  readonly bytes_written: number
  readonly total_bytes: number | null
  /** How far the present phase is, and what it counts up to. */
  readonly step_bytes: number
  readonly step_total: number | null
  readonly rate: number | null
  readonly eta_seconds: number | null
  readonly image: RunImage | null
  readonly disk: RunDisk | null
  readonly bottleneck: string | null
  readonly verified: boolean | null
  readonly reason: string | null
  readonly armed_by: Armer | null
  readonly steps: readonly RunStep[]
  /** Whether the machine sent its log. */
  readonly has_log: boolean
}

/** What the server knows of a run that begins, from the machine's record. */
export interface RunOrigin {
  readonly mac: Mac
  readonly mode: RunMode
  readonly image: RunImage | null
  readonly disk: RunDisk | null
  readonly armed_by: Armer | null
}

/** A run that was first heard of at `now`; the post itself is applied by `nextRun` (run-turn.ts). */
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
  total_bytes: null,
  step_bytes: 0,
  step_total: null,
  rate: null,
  eta_seconds: null,
  bottleneck: null,
  verified: null,
  reason: null,
  steps: [{ phase: 'started', at: now }],
  has_log: false,
})

/** A flash that a client told of at its end alone; `plannedAt`: when it got its plan. */
export const createSilentRun = (id: string, origin: RunOrigin, plannedAt: string | null): Run => ({
  ...createRun(id, origin, plannedAt ?? ''),
  reported: false,
  started_at: plannedAt,
  steps: plannedAt === null ? [] : [{ phase: 'started', at: plannedAt }],
})
