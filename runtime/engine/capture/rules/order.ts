/** An operator's order to capture a disk of a machine, and how far it is (docs/decisions/0022). */
import { z } from 'zod'
import { epochOf } from '#kit/foundation/instants.ts'
import { PickedDiskSchema } from '#engine/inventory/rules/machine.ts'
import { renderHyphens, type Mac, MacSchema } from '#kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { plainWords } from '#kit/foundation/printable.ts'
import { ImageNameSchema, MAX_UPLOAD_BYTES } from '#engine/catalog/rules/cache-entry.ts'
import { RunIdSchema } from '#engine/inventory/rules/run.ts'

/** Of one PATCH, which a client keeps in memory until the cache has it on its disk. */
export const MAX_CAPTURE_PART_BYTES = 64 * 2 ** 20
const MAX_WARNINGS = 32
const MAX_WARNING_LENGTH = 500
const ENDING = '.img.zst'

export const CaptureNameSchema = ImageNameSchema.refine(
  (name) => name.toLowerCase().endsWith(ENDING),
  `must end in ${ENDING}`,
)

/** Only descriptive: cuts what is too long. */
const words = (most: number) =>
  z
    .string()
    .transform((text) => plainWords(text.slice(0, most)))
    .nullish()
    .transform((text) => text || null)
    .catch(null)

/** Every text is the machine's own and hostile. */
export const CaptureSourceSchema = z.object({
  /** Null: a person captures. */
  mac: MacSchema.nullish().transform((mac) => mac ?? null),
  hostname: words(255),
  run: RunIdSchema.nullish()
    .transform((run) => run ?? null)
    .catch(null),
  disk: z.object({
    path: words(255),
    model: words(128),
    serial: words(256),
    size_bytes: z.int().min(1).max(MAX_UPLOAD_BYTES),
  }),
  generalized: z.boolean().default(false).catch(false),
})

export type CaptureSource = Readonly<z.output<typeof CaptureSourceSchema>>

/** The body of `POST /captures`. Unknown fields are dropped, as a newer client may send more. */
export const CaptureSchema = z.object({ name: CaptureNameSchema, source: CaptureSourceSchema })

const digest = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')

/** The body of `POST /captures/{id}/finish`. */
export const CaptureEndSchema = z.object({
  bytes: z.int().min(1),
  sha256: digest,
  index_sha256: digest,
  /** Such as SSH host keys, which should not be on two machines. */
  warnings: z
    .array(z.string().transform((text) => plainWords(text.slice(0, MAX_WARNING_LENGTH))))
    .max(MAX_WARNINGS)
    .default([]),
})
export type CaptureEnd = Readonly<z.output<typeof CaptureEndSchema>>

/** The body of `POST /captures/{id}/accept`; without a name, that of the order. */
export const AcceptSchema = z.strictObject({ name: CaptureNameSchema.nullish() })

/** The body of `POST /captures/tokens`. */
export const TokenRequestSchema = z.strictObject({ name: CaptureNameSchema })

const OVERHEAD_BYTES = 64 * 2 ** 20

/** Incompressible data grows a little, and the index is added. */
export const maxBytesOf = ({ disk: { size_bytes: bytes } }: Pick<CaptureSource, 'disk'>): number =>
  bytes + Math.ceil(bytes / 64) + OVERHEAD_BYTES

/** Null: no number of bytes. */
export function parseUploadOffset(text: string | null): number | null {
  const offset = /^\d{1,16}$/.test(text ?? '') ? Number(text) : Number.NaN
  return Number.isSafeInteger(offset) ? offset : null
}

const RESULTS = ['done', 'failed', 'cancelled'] as const
export type CaptureResult = (typeof RESULTS)[number]

const time = z.iso.datetime({ offset: true })

export const CaptureOrderSchema = z.object({
  name: CaptureNameSchema,
  /** As `target_disk_serial` spells it. */
  disk_serial: z.string().min(1),
  /** What the disk was when picked by another name than its serial number. */
  disk_seen: PickedDiskSchema.optional(),
  generalize: z.boolean(),
  ordered_at: time,
  /** Live boots that were offered for it and did not end it. */
  offers: z.int().min(0),
  /** When its newest plan was made; null: never. */
  planned_at: time.nullable(),
  /** Null: still to be done. */
  result: z.enum(RESULTS).nullable(),
  ended_at: time.nullable(),
  reason: z.string().nullable(),
})
export type CaptureOrder = Readonly<z.output<typeof CaptureOrderSchema>>

type OrderedCapture = Pick<CaptureOrder, 'name' | 'disk_serial' | 'disk_seen' | 'generalize'>

/** `now`: ISO 8601. */
export const createOrder = (ordered: OrderedCapture, now: string): CaptureOrder => ({
  ...ordered,
  ordered_at: now,
  offers: 0,
  planned_at: null,
  result: null,
  ended_at: null,
  reason: null,
})

export const isPending = (order: CaptureOrder | null): order is CaptureOrder =>
  order !== null && order.result === null

/** `now`: ISO 8601. */
export const endOrder = (
  order: CaptureOrder,
  result: CaptureResult,
  reason: string | null,
  now: string,
): CaptureOrder => ({ ...order, result, reason, ended_at: now })

const AGAIN_MS = 1000

/** The upload token is issued then, later than any before, whatever the clock says. */
export function planOrder(order: CaptureOrder, now: string): CaptureOrder {
  if (order.planned_at === null) return { ...order, planned_at: now }
  const [last, present] = [epochOf(order.planned_at), epochOf(now)]
  if (present >= last && present - last < AGAIN_MS) return order
  const next = Temporal.Instant.fromEpochMilliseconds(Math.max(present, last + 1))
  return { ...order, planned_at: next.toString({ fractionalSecondDigits: 3 }) }
}

/** Tokens mean this order of this machine by this name. */
export const nameOrder = (mac: Mac, { ordered_at }: CaptureOrder): string =>
  `${renderHyphens(mac)}-${epochOf(ordered_at).toString(36)}`

/** Unique for each machine, even where names are equal. */
export const NAME_FOR_EACH = '{name}-{mac}.img.zst'

export const isForEach = (template: string): boolean => /\{(?:name|mac)\}/.test(template)

/** For a machine without a name; its MAC address is in the image's name anyway. */
const NAMELESS = 'machine'
const MAX_NAME = 60

/** The refusal says why the name cannot be that of a file. */
export function nameCapture(
  machine: { readonly mac: Mac; readonly name: string | null; readonly hostname: string | null },
  template: string,
): Result<string, string> {
  const mac = renderHyphens(machine.mac)
  const called = machine.name ?? machine.hostname ?? (template.includes('{mac}') ? NAMELESS : mac)
  const values: Readonly<Record<string, string>> = { mac, name: toFileName(called) || NAMELESS }
  const filled = template.replaceAll(/\{(name|mac)\}/g, (_, key: string) => values[key] ?? '')
  const checked = CaptureNameSchema.safeParse(filled)
  if (checked.success) return accept(filled)
  return refuse(`No image can be called ${filled}: ${checked.error.issues[0]?.message}.`)
}

const toFileName = (name: string): string =>
  name
    .replaceAll(/[^\p{L}\p{N}._-]+/gu, '-')
    .slice(0, MAX_NAME)
    .replaceAll(/^[.-]+|-+$/g, '')

// One-time tokens, by which a captured image is uploaded to the cache (docs/decisions/0022).

/** Key for captures: the server signs, the cache verifies. */
export const UPLOAD_KEY = 'capture uploads'

interface UploadToken {
  /** One capture of one machine, or one by hand. */
  readonly order: string
  /** Milliseconds since the epoch; of two tokens of an order, the later one counts. */
  readonly issuedAt: number
}

interface UploadPurpose {
  /** Null: not of a machine that the server drives. */
  readonly mac: Mac | null
  readonly name: string
}

type UploadTokenDefect = 'malformed' | 'foreign' | 'expired'

const SHAPE = /^([\w-]{8,64})\.([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36
/** To begin; the duration of a capture is not limited. */
export const UPLOAD_TOKEN_HOURS = 24
const LIFETIME_MS = UPLOAD_TOKEN_HOURS * 3_600_000

/** `<order>.<issued>.<signature>`. */
export function renderUploadToken(
  { order, issuedAt }: UploadToken,
  purpose: UploadPurpose,
  sign: (text: string) => string,
): string {
  const issued = issuedAt.toString(RADIX)
  return `${order}.${issued}.${sign(textOf(order, issued, purpose))}`
}

/** `verify` compares in constant time. Refused: malformed, foreign, or expired. */
export function parseUploadToken(
  text: string,
  { now, ...purpose }: UploadPurpose & { readonly now: Date },
  verify: (text: string, signature: string) => boolean,
): Result<UploadToken, UploadTokenDefect> {
  const [, order = '', issued = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '') return refuse('malformed')
  if (!verify(textOf(order, issued, purpose), signature)) return refuse('foreign')
  const issuedAt = Number.parseInt(issued, RADIX)
  return Math.abs(now.getTime() - issuedAt) > LIFETIME_MS
    ? refuse('expired')
    : accept({ order, issuedAt })
}

export const UPLOAD_TOKEN_REFUSALS: Readonly<Record<UploadTokenDefect, string>> = {
  malformed: 'this is not an upload token',
  foreign:
    'the upload token is for another machine or image, or from a server with another key than this cache (state directory or [server] session_secret)',
  expired: 'the upload token has expired',
}

const textOf = (order: string, issued: string, { mac, name }: UploadPurpose): string =>
  JSON.stringify([order, issued, mac ?? '', name])
