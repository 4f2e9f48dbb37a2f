/** What the server makes of a provider: its routes, its part of the login page, and the logout. */
import type { TypedForms } from '#kit/web/access/typed-forms.ts'
import type { People } from '#fleet/access/accounts.ts'
import { createProviderPeople } from '#fleet/access/provider-people.ts'
import { page } from '#kit/web/answers/answers.ts'
import { showProviderError, type NamedLogins, type ProviderLogins } from '#kit/web/access/login.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import type { Sessions } from '#kit/web/access/session.ts'
import type { RecordEvents } from '#kit/web/answers/caller.ts'
import type { SiteViews } from '#kit/web/ui/site-views.ts'
import type { Journal } from '#fleet/state/journal.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { fill } from '#kit/foundation/text.ts'
import {
  createLoginStates,
  originOf,
  PROVIDER_PATH,
  providerLoginRoutes,
  type ProviderViews,
  type SetProvider,
} from './provider-login.ts'

interface ProviderLoginsOptions {
  readonly journal: Pick<Journal, 'record'>
  readonly secret: Secret
  now(): Date
  readonly provider: () => SetProvider | null
  readonly configured: () => SetProvider | null
  readonly store: People
  readonly named: NamedLogins
  readonly sessions: Sessions
  readonly typed: Pick<TypedForms, 'remember'>
  readonly views: ProviderViews & Pick<SiteViews, 'renderLogin' | 'renderTyped'>
  readonly recordAll: RecordEvents
}

export function createProviderLogins(options: ProviderLoginsOptions): {
  readonly providers: ProviderLogins
  readonly routes: readonly Route[]
} {
  const { provider: find, store, views, journal } = options
  const admission = createProviderPeople({ people: store, record: journal.record })

  const providers: ProviderLogins = {
    describe(next) {
      const provider = find()
      if (provider === null) return null
      const { name } = provider
      const failure = provider.failure()
      const error =
        failure === null ? null : `${name} cannot be used at the moment: ${failure.detail}.`
      return { name, href: `${PROVIDER_PATH}?next=${encodeURIComponent(next)}`, error }
    },
    leave(event, { id }) {
      const provider = store.find(id)?.provider === null ? null : find()
      const to = provider?.findLogout(`${originOf(event)}/ui/login`) ?? null
      if (provider === null || to === null) return null
      return page(views.renderOnward({ title: fill('Logging out at {name}', provider), to }), 200)
    },
  }
  return {
    providers,
    routes: providerLoginRoutes({
      ...options,
      ...admission,
      states: createLoginStates(options),
      findPerson: store.find,
      showLogin: showProviderError({ ...options, providers }),
    }),
  }
}
