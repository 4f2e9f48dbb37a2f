/** API tokens: named, scoped, shown once. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import type { MachineBase } from '../core/machine.ts'
import { TOKEN_SCOPES } from '../services/tokens.ts'
import { json, nothing } from './answers.ts'
import { checked, renderSchema } from './checked.ts'
import { refuse } from './faults.ts'
import type { Site } from './line.ts'
import type { Route } from './route.ts'

export const TOKEN_BODY = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/, 'letters, digits, blanks, `.`, `_` and `-`')
    .describe('Shown in the record of what it did'),
  scopes: z.array(z.enum(TOKEN_SCOPES)).min(1).max(TOKEN_SCOPES.length),
  expires_at: z.iso.datetime().nullable().default(null),
})

export const TOKEN = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(TOKEN_SCOPES)),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
  expires_at: z.string().nullable(),
})

const MOST_TOKENS = 200

export function tokenRoutes<M extends MachineBase>(site: Site<M>): readonly Route[] {
  const { tokens } = site

  async function note(event: H3Event, kind: string, id: string, name: string): Promise<void> {
    const verb = kind.endsWith('created') ? 'made' : 'revoked'
    await site.noteAll(
      [{ kind, subject_kind: 'auth', summary: `The token ${name} was ${verb}`, details: { name } }],
      { subject_id: id, ...site.by(event) },
    )
  }

  async function create(event: H3Event, body: unknown): Promise<unknown> {
    const wish = checked(TOKEN_BODY, body)
    const known = await tokens.list()
    if (known.some(({ name }) => name === wish.name)) {
      throw refuse(409, `there is a token ${wish.name} already`)
    }
    if (known.length >= MOST_TOKENS) throw refuse(409, `there are ${known.length} tokens already`)
    const { record, token } = await tokens.create(wish)
    await note(event, 'auth.token.created', record.id, record.name)
    return json({ ...record, token }, 201)
  }

  async function revoke(event: H3Event): Promise<unknown> {
    const id = getRouterParam(event, 'id') ?? ''
    const record = (await tokens.list()).find((each) => each.id === id)
    if (record === undefined || !(await tokens.revoke(id))) throw refuse(404, 'no such token')
    await note(event, 'auth.token.revoked', id, record.name)
    return nothing()
  }

  return [
    {
      method: 'GET',
      path: '/tokens',
      access: 'admin',
      doc: {
        summary: 'API tokens, without what they are',
        answers: { 200: { type: 'array', items: renderSchema(TOKEN, 'output') } },
      },
      handle: () => tokens.list(),
    },
    {
      method: 'POST',
      path: '/tokens',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Makes a token; its text is in this answer and nowhere else',
        body: renderSchema(TOKEN_BODY, 'input'),
        answers: { 201: renderSchema(TOKEN.extend({ token: z.string() }), 'output') },
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
