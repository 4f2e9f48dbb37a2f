/** First-boot templates and configurations as they go over HTTP. */
import { z } from 'zod'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { FirstBoot } from './seed.ts'
import { TemplateNameSchema, TemplateSchema } from './template.ts'

const text = z.string().max(2 ** 18)

export const DocumentSchema = z.object({
  cloud_init: z
    .object({
      'user-data': text,
      'meta-data': text,
      'network-config': text.nullable().default(null),
      'vendor-data': text.optional(),
    })
    .nullable(),
  ignition: text.nullable(),
  reason: z.string().max(1000).nullable().default(null).describe('Why one of the two is null'),
})

export const renderDocument = ({
  cloudInit,
  ignition,
  reason,
}: FirstBoot): z.output<typeof DocumentSchema> => ({ cloud_init: cloudInit, ignition, reason })

/** Malformed: nothing in it could be written. */
export function parseFirstBoot(document: unknown): Result<FirstBoot, 'malformed'> {
  const parsed = DocumentSchema.safeParse(document)
  if (!parsed.success) return refuse('malformed')
  const { cloud_init: cloudInit, ignition, reason } = parsed.data
  return cloudInit === null && ignition === null
    ? refuse('malformed')
    : accept({ cloudInit, ignition, reason })
}

export const OfferSchema = z.object({ template: TemplateNameSchema, token: z.string().max(200) })

export const TicketSchema = z.strictObject({ token: z.string().max(200) })

/** Secrets are dots. */
export const NamedTemplateSchema = TemplateSchema.safeExtend({
  name: TemplateNameSchema,
  updated_at: z.iso.datetime(),
  machines: z.int().describe('How many machines have it'),
})
