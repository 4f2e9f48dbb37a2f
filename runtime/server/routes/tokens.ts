/** The API of API tokens: named, scoped, shown once. */
import { getRouterParam, type H3Event, type HTTPError } from 'h3'
import * as z from 'zod'
import { fieldError, listFieldErrors, type FieldError } from '../../kit/foundation/field-error.ts'
import { refuse as no, type Result } from '../../kit/foundation/result.ts'
import { TOKEN_SCOPES, type MadeToken, type TokenRecord } from '../../fleet/access/tokens.ts'
import { json, nothing, type Answer } from '../../kit/web/answers/answers.ts'
import { renderSchema } from '../../kit/web/answers/checked.ts'
import { refuse, refuseFields } from '../../kit/web/answers/faults.ts'
import type { Site } from './site.ts'
import type { Route } from '../../kit/web/answers/route.ts'

const TOKEN_BODY = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/, 'letters, digits, blanks, `.`, `_` and `-`')
    .describe('Shown in the record of what it did'),
  scopes: z.array(z.enum(TOKEN_SCOPES)).min(1).max(TOKEN_SCOPES.length),
  expires_at: z.iso.datetime().nullable().default(null),
})

const TOKEN = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(TOKEN_SCOPES)),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
  expires_at: z.string().nullable(),
})

const MAX_TOKENS = 200

export type TokenRefusal =
  | { readonly why: 'fields'; readonly fields: readonly FieldError[] }
  | { readonly why: 'name-taken' | 'too-many'; readonly name: string; readonly most: number }

/**
 * Creates a token by the one rule for programs and pages, and records the event. The token's text is in
 * the result and nowhere else. The refusal says which field is wrong, or that the name is taken or
 * there are too many.
 */
export async function createToken(
  site: Site,
  event: H3Event,
  body: unknown,
): Promise<Result<MadeToken, TokenRefusal>> {
  const parsed = TOKEN_BODY.safeParse(body)
  if (!parsed.success) return no({ why: 'fields', fields: listFieldErrors(parsed.error) })
  const { name, expires_at: end } = parsed.data
  if (end !== null && Date.parse(end) <= site.now().getTime()) {
    return no({ why: 'fields', fields: [fieldError(['expires_at'], 'is in the past')] })
  }
  const made = await site.tokens.create(parsed.data, MAX_TOKENS)
  if (!made.ok) return no({ why: made.refusal, name, most: MAX_TOKENS })
  await recordEvent(site, event, 'created', made.value.record)
  return made
}

/** Revokes a token and records the event. Returns false where there was none. */
export async function revokeToken(site: Site, event: H3Event, id: string): Promise<boolean> {
  const record = (await site.tokens.list()).find((each) => each.id === id)
  if (record === undefined || !(await site.tokens.revoke(id))) return false
  await recordEvent(site, event, 'revoked', record)
  return true
}

async function recordEvent(
  site: Site,
  event: H3Event,
  done: 'created' | 'revoked',
  { id, name, scopes, expires_at }: TokenRecord,
): Promise<void> {
  const kind = `auth.token.${done}`
  const summary = `The token ${name} was ${done}`
  const details = { name, scopes, expires_at }
  const on = { subject_id: id, ...site.by(event) }
  await site.recordAll([{ kind, subject_kind: 'auth', summary, details }], on)
}

export function tokenRoutes(site: Site): readonly Route[] {
  const { tokens } = site

  async function create(event: H3Event, body: unknown): Promise<Answer> {
    const made = await createToken(site, event, body)
    if (!made.ok) throw asError(made.refusal)
    const { record, token } = made.value
    return json({ ...record, token }, 201)
  }

  async function revoke(event: H3Event): Promise<Answer> {
    const isGone = await revokeToken(site, event, getRouterParam(event, 'id') ?? '')
    if (!isGone) throw refuse(404, 'no such token')
    return nothing()
  }

  return [
    {
      method: 'GET',
      path: '/tokens',
      access: 'admin',
      doc: {
        summary: 'API tokens, without their text',
        answers: { 200: { type: 'array', items: renderSchema(TOKEN, 'output') } },
      },
      handle: async () => json(await tokens.list()),
    },
    {
      method: 'POST',
      path: '/tokens',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Creates a token; its text is only in this response',
        body: renderSchema(TOKEN_BODY, 'input'),
        answers: { 201: renderSchema(TOKEN.extend({ token: z.string() }), 'output') },
        refuses: [409],
      },
      handle: create,
    },
    {
      method: 'DELETE',
      path: '/tokens/:id',
      access: 'admin',
      doc: { summary: 'Revokes a token', answers: { 204: null } },
      handle: revoke,
    },
  ]
}

function asError(refusal: TokenRefusal): HTTPError {
  switch (refusal.why) {
    case 'fields':
      return refuseFields(refusal.fields)
    case 'name-taken':
      return refuse(409, `a token named ${refusal.name} already exists`)
    case 'too-many':
      return refuse(409, `there are ${refusal.most} tokens already`)
  }
}
