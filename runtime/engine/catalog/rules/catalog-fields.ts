/** Parses and bounds the fields of one catalog entry, the same for JSON and TOML. */
import { z } from 'zod'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export const MAX_NAME_LENGTH = 512
const MAX_TEXT_LENGTH = 8192

const text = (maxLength: number, words: string) =>
  z
    .string(words)
    .max(maxLength, words)
    .regex(/\S/, words)
    .transform((given) => given.toWellFormed())

/** It decides which bytes are written: an invalid value refuses the whole entry. */
const decisive = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((given) => (given === '' ? null : (given ?? null)), schema.nullable())

/** An invalid value is dropped. */
const descriptive = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().catch(null)

/** `img.gz`, `x86_64`: they end up in command lines and file names. */
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
    /** Lower case. */
    sha256: decisive(
      z
        .string(NO_DIGEST)
        .trim()
        .toLowerCase()
        .regex(/^[0-9a-f]{64}$/, NO_DIGEST),
    ),
    /** Of an image in frames; with an invalid one the whole image is read instead. */
    index_sha256: z
      .string()
      .trim()
      .toLowerCase()
      .regex(/^[0-9a-f]{64}$/)
      .nullish()
      .catch(null),
    /** The operator says that it is an image, whatever it looks like. */
    any_content: z.boolean().nullish().catch(null),
    size_bytes: descriptive(z.int().min(0)),
    raw_size_bytes: z.int().min(0).nullish().catch(null),
    raw_sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .nullish()
      .catch(null),
    /** ISO time when the cache got it. */
    added_at: z.iso.datetime({ offset: true }).nullish().catch(null),
    description: descriptive(text(MAX_TEXT_LENGTH, '')),
    netboot_ref: descriptive(NameSchema),
  },
  'is not a table of fields',
)

export type CatalogFields = Readonly<z.infer<typeof FieldsSchema>>

/** The refusal names the entry, and says why. */
export function parseCatalogFields(
  entry: unknown,
  index: number,
): Result<CatalogFields, { readonly name: string; readonly reason: string }> {
  const fields = FieldsSchema.safeParse(entry)
  if (fields.success) return accept(fields.data)
  const name = NameSchema.safeParse(Object(entry).name).data ?? `entry ${index + 1}`
  return refuse({ name, reason: fields.error.issues[0]?.message ?? '' })
}
