/** A server of the current line for tests, with all of its routes and pages; and people who log in to it. */
import * as assert from 'uvu/assert'
import type { Role } from '#kit/web/answers/rules/rights.ts'
import { openAssembled } from '../server/assembled.ts'

/** The password that `addPerson` gives. */
export const PERSON_PASSWORD = 'a password of their own'

/** `await using`: everything is closed and removed at the end, also of a test that failed. */
export const createCurrentServer = (env: Readonly<Record<string, string>> = {}) =>
  openAssembled({ env })

export type CurrentServer = Awaited<ReturnType<typeof createCurrentServer>>

/** The body of a form. */
export const asForm = (fields: Readonly<Record<string, string>>): RequestInit => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

/** Adds a person as the administrator does, with the labels of their scope; resolves to what they ask with. */
export async function addPerson(
  server: CurrentServer,
  name: string,
  role: Role,
  labels: readonly string[] = [],
) {
  const operator = await server.operator()
  const fields = { name, role, labels: labels.join(', '), password: PERSON_PASSWORD }
  const added = await operator('/ui/people', asForm(fields))
  assert.match(added.headers.get('location') ?? '', 'done=added')
  const { status, cookie } = await server.logIn({ username: name, password: PERSON_PASSWORD })
  assert.is(status, 303)
  return server.withCookie(cookie)
}
