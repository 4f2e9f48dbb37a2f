/** Parses and bounds the fields of one catalog entry, the same for JSON and TOML. */
import { z } from 'zod'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'

export const MAX_NAME_LENGTH = 512
const MAX_TEXT_LENGTH = 8192

const text = (maxLength: number, words: string) =>
  z
    .string(words)
    .max(maxLength, words)
    .regex(/\S/, words)
    .transform((given) => given.toWellFormed())

/** Decides which bytes are written: what makes no sense refuses the whole entry. */
const decisive = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((given) => (given === '' ? null : (given ?? null)), schema.nullable())

/** Only describes: what makes no sense is left out. */
const descriptive = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().catch(null)

/** `img.gz`, `x86_64`: short and plain, as they end up in command lines and file names. */
const token = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9][a-z0-9._+-]{0,31}$/)

const NO_DIGEST = 'sha256 is not 64 hexadecimal digits'
const NameSchema = text(MAX_NAME_LENGTH, `has no name of 1 to ${MAX_NAME_LENGTH} characters`)

/** `""` and null mean absent. */
const FieldsSchema = z.object(
  {
    name: NameSchema,
    src: text(MAX_TEXT_LENGTH, 'has no source (src)'),
    resolved_src: decisive(text(MAX_TEXT_LENGTH, 'resolved_src is not an address')),
    format: descriptive(token),
    arch: descriptive(token),
    /** The digest is in lower case. */
    sha256: decisive(
      z
        .string(NO_DIGEST)
        .trim()
        .toLowerCase()
        .regex(/^[0-9a-f]{64}$/, NO_DIGEST),
    ),
    /**
     * The digest of the index of an image in frames; if it makes no sense, the whole image is read
     * instead.
     */
    index_sha256: z
      .string()
      .trim()
      .toLowerCase()
      .regex(/^[0-9a-f]{64}$/)
      .nullish()
      .catch(null),
    /** A mark by the operator: the bytes are an image, whatever they look like. */
    any_content: z.boolean().nullish().catch(null),
    size_bytes: descriptive(z.int().min(0)),
    /** The size and the digest of the decoded image, where its index has them. */
    raw_size_bytes: z.int().min(0).nullish().catch(null),
    raw_sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .nullish()
      .catch(null),
    /** When the cache got it, as an ISO time. */
    added_at: z.iso.datetime({ offset: true }).nullish().catch(null),
    description: descriptive(text(MAX_TEXT_LENGTH, '')),
    netboot_ref: descriptive(NameSchema),
  },
  'is not a table of fields',
)

export type CatalogFields = Readonly<z.infer<typeof FieldsSchema>>

/** The refusal holds what the entry can be called in a message, and why it is refused. */
export function parseCatalogFields(
  entry: unknown,
  index: number,
): Result<CatalogFields, { readonly name: string; readonly reason: string }> {
  const fields = FieldsSchema.safeParse(entry)
  if (fields.success) return accept(fields.data)
  const name = NameSchema.safeParse(Object(entry).name).data ?? `entry ${index + 1}`
  return refuse({ name, reason: fields.error.issues[0]?.message ?? '' })
}
