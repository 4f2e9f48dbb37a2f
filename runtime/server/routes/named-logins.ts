/** People who log in with a name, as the login page and the change of a password see them. */
import { allowsNamelessLogin } from '#fleet/access/rules/nameless-login.ts'
import type { Accounts } from '#fleet/access/accounts.ts'
import type { NamedLogins } from '#kit/web/access/login.ts'
import type { PeoplePasswords } from '#kit/web/access/password-change.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { isSameIssuer } from '#kit/net/openid/rules/provider-address.ts'
import type { PeopleServices } from './site.ts'

/** Whether the administrator's password alone opens a session, and those that it opened count. */
export function allowsNameless({
  store,
  nameless,
  provider: findProvider,
}: Omit<PeopleServices, 'checkHash'>): boolean {
  const wanted = nameless()
  // Each request of such a session asks this.
  if (wanted === 'always') return true
  const set = findProvider()
  const open = set === null || set.failure() !== null ? null : set.issuer
  const administrators = store
    .list()
    .filter(({ role }) => role === 'administrate')
    .filter(({ id, provider }) =>
      provider === null
        ? store.passwordOf(id) !== null
        : // Whom another provider named before this one was set cannot come back.
          open !== null && isSameIssuer(provider.issuer, open),
    )
  return allowsNamelessLogin(wanted, { administrators: administrators.length })
}

export function createNamedLogins(
  people: PeopleServices,
  accounts: Pick<Accounts, 'setPassword'>,
): NamedLogins & PeoplePasswords {
  const { store, checkHash } = people
  return {
    isUsed: () => store.list().some(({ id }) => store.passwordOf(id) !== null),
    allowsNameless: () => allowsNameless(people),
    find: store.findByName,
    findById: store.find,
    checkPassword: (person, given) =>
      checkHash(given, person === null ? null : store.passwordOf(person.id)),
    async storeLogin({ id }) {
      await store.storeLogin(id, {})
    },
    async setPassword({ id, name }, password, ip) {
      const set = await accounts.setPassword(id, password, { actor: `person:${name}`, ip })
      if (!set.ok) throw new Fault('conflict', `${name} was removed or changed meanwhile`)
    },
  }
}
