/** The API of API tokens: named, scoped, shown once. */
import { getRouterParam, type H3Event, type HTTPError } from 'h3'
import * as z from 'zod'
import { fieldError, listFieldErrors, type FieldError } from '#kit/foundation/field-error.ts'
import { refuse as no, type Result } from '#kit/foundation/result.ts'
import type { MadeToken, TokenRecord } from '#fleet/access/tokens.ts'
import { SCOPES, permits, scopesOf, type Scope } from '#kit/web/answers/rules/rights.ts'
import { json, nothing, type Answer } from '#kit/web/answers/answers.ts'
import type { Caller } from '#kit/web/answers/caller.ts'
import { renderSchema } from '#kit/web/answers/checked.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import type { Site } from './site.ts'
import type { Route } from '#kit/web/answers/route.ts'

const TOKEN_BODY = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/, 'letters, digits, blanks, `.`, `_` and `-`')
    .describe('Shown in events'),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
  expires_at: z.iso.datetime().nullable().default(null),
})

const TOKEN = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  owner: z.string().nullable().describe('Owner of the token; null: the administrator'),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
  expires_at: z.string().nullable(),
})

const MAX_TOKENS = 200

export type TokenRefusal =
  | { readonly why: 'fields'; readonly fields: readonly FieldError[] }
  | { readonly why: 'name-taken' | 'too-many'; readonly name: string; readonly most: number }
  /** Nobody gives a token rights that they do not have. */
  | { readonly why: 'beyond'; readonly scope: Scope }

/**
 * One rule for programs and pages; records the event. Only the result holds the token's text. The
 * refusal says which field is wrong, or that the name is taken or there are too many.
 */
export async function createToken(
  site: Site,
  event: H3Event,
  body: unknown,
): Promise<Result<MadeToken, TokenRefusal>> {
  const parsed = TOKEN_BODY.safeParse(body)
  if (!parsed.success) return no({ why: 'fields', fields: listFieldErrors(parsed.error) })
  const { name } = parsed.data
  const caller = site.caller(event)
  const maker = await findMaker(site, caller)
  const wrong = findWrongEnd(parsed.data.expires_at, maker, site.now())
  if (wrong !== null) {
    return no({ why: 'fields', fields: [fieldError(['expires_at'], wrong)] })
  }
  const rights = listScopes(caller)
  const beyond = parsed.data.scopes.find((scope) => !permits(rights, scope))
  if (beyond !== undefined) return no({ why: 'beyond', scope: beyond })
  const owner = caller.kind === 'anonymous' ? null : (caller.person?.id ?? null)
  const made = await site.tokens.create(
    { ...parsed.data, owner, maker: maker?.id ?? null },
    MAX_TOKENS,
  )
  if (!made.ok) return no({ why: made.refusal, name, most: MAX_TOKENS })
  await recordEvent(site, event, 'created', made.value.record)
  return made
}

/** Undefined: a person is logged in. */
const findMaker = async ({ tokens }: Pick<Site, 'tokens'>, caller: Caller) =>
  caller.kind === 'token'
    ? (await tokens.list()).find(({ name }) => name === caller.name)
    : undefined

function findWrongEnd(
  end: string | null,
  maker: TokenRecord | undefined,
  now: Date,
): string | null {
  if (end !== null && Date.parse(end) <= now.getTime()) return 'is in the past'
  const last = maker?.expires_at ?? null
  return last === null || (end !== null && Date.parse(end) <= Date.parse(last))
    ? null
    : `must be ${last} or earlier, when the token that creates this one expires`
}

/** People see their own, administrators all. */
export async function listSeenTokens(site: Site, event: H3Event) {
  const caller = site.caller(event)
  // A program is not its owner: it sees no other token.
  if (caller.kind === 'token') site.checkScope(event, 'admin')
  const all = await site.tokens.list()
  if (permits(listScopes(caller), 'admin')) return all
  const owner = caller.kind === 'anonymous' ? null : (caller.person?.id ?? null)
  return all.filter((token) => owner !== null && token.owner === owner)
}

export function listScopes(caller: Caller): readonly Scope[] {
  if (caller.kind === 'anonymous') return []
  if (caller.kind === 'token') return caller.scopes
  return caller.person === null ? SCOPES : scopesOf(caller.person.role)
}

/** Records the event. False: there was none. */
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
  const toWire = ({ owner, ...token }: TokenRecord) => ({
    ...TOKEN.parse({ ...token, owner }),
    owner: owner === null ? null : (site.people?.store.find(owner)?.name ?? owner),
  })

  async function create(event: H3Event, body: unknown): Promise<Answer> {
    const made = await createToken(site, event, body)
    if (!made.ok) throw asError(made.refusal)
    const { record, token } = made.value
    return json({ ...toWire(record), token }, 201)
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
      access: 'read',
      reach: 'shared',
      doc: {
        summary: 'API tokens, without their text; administrators see all of them, others their own',
        answers: { 200: { type: 'array', items: renderSchema(TOKEN, 'output') } },
      },
      handle: async (event) => json((await listSeenTokens(site, event)).map(toWire)),
    },
    {
      method: 'POST',
      path: '/tokens',
      access: 'admin',
      reach: 'shared',
      takes: 'json',
      doc: {
        summary: 'Creates a token; its text is shown only in this response',
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
    case 'beyond':
      return refuse(403, `the caller lacks the scope ${refusal.scope}`)
    case 'too-many':
      return refuse(409, `there are ${refusal.most} tokens already`)
  }
}
