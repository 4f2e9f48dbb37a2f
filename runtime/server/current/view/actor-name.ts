/** Who did something, as people know them: `operator` and `person:anna` are words of the record. */
const NAMED: ReadonlyMap<string, string> = new Map(
  Object.entries({ operator: 'the operator', system: 'the server', 'pxe-client': 'the machine' }),
)

export function nameActor(actor: string): string {
  if (actor.startsWith('person:')) return actor.slice(7)
  if (!actor.startsWith('token:')) return NAMED.get(actor) ?? actor
  const [name = '', ...owner] = actor.slice(6).split('@')
  return owner.length === 0 ? `the token ${name}` : `the token ${name} of ${owner.join('@')}`
}

export function personOfActor(actor: string): string | null {
  if (actor.startsWith('person:')) return actor.slice(7)
  const at = actor.indexOf('@')
  if (actor.startsWith('token:') && at > 0) return actor.slice(at + 1)
  return actor === 'operator' || actor.startsWith('token:') ? 'administrator' : null
}
