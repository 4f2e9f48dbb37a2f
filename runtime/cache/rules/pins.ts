/** The body of `POST /pins`: which images a server's machines are bound to. */
import { z } from 'zod'
import { parseFields } from '../../core/foundation/field-error.ts'

const MAX_REFS = 10_000

const BODY = z
  .strictObject({
    /** The server's own name or address: what it says replaces what it said before. */
    holder: z.string().min(1).max(200),
    refs: z
      .array(z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits'))
      .max(MAX_REFS),
    /** How many machines are bound to each of the refs; null: it does not say. */
    machines: z
      .array(z.int().min(0))
      .nullish()
      .transform((counts) => counts ?? null),
  })
  .refine(({ refs, machines }) => machines === null || machines.length === refs.length, {
    path: ['machines'],
    message: 'must have one number for each of refs',
  })

export const parsePins = (body: unknown) => parseFields(BODY, body)
