/** Makes the pages of a release line out of its routes, navigation and views, and what all pages of both lines have. */
import type { H3Event } from 'h3'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { assetRoute, type Assets } from '#kit/web/answers/assets.ts'
import { callerOf } from '#kit/web/answers/caller.ts'
import {
  renderErrorPage,
  renderLoginPage,
  renderOnward,
  renderTypedPage,
} from '#kit/web/ui/site-views.ts'
import { createLayout, themeRoute } from '#kit/web/ui/layout.ts'
import type { Content } from '#kit/web/ui/html.ts'
import type { Section } from '#kit/web/ui/rules/sections.ts'
import { renderRefused } from '#server/openid/provider-login.ts'
import { DOCS_PATH } from '#server/routes/docs-site.ts'
import type { ServerPlugin, ServerViews, Site } from '#server/routes/site.ts'
import type { ChannelViews } from '#server/updates/channel.ts'
import type { ContextRoute } from './context-routes.ts'
import { createPageContext, type PageContext, type PageServices } from './page-context.ts'
import { describeWho } from '#kit/web/ui/who.ts'

interface PagesOptions<
  M extends MachineBase,
  Services extends PageServices,
  Context extends PageContext<M, Services>,
> {
  readonly version: string
  readonly assets: Assets
  readonly nav: readonly Section[]
  /** Absent: the line has no search. */
  readonly find?: string
  /** What the line adds to the foot of its pages. */
  foot?(event: H3Event): Content
  readonly login: { readonly label: string; readonly help: Content; readonly what?: string }
  readonly table: ChannelViews<M>
  readonly services: Services
  /** For a caller's view of the site; absent: the same for everybody. */
  servicesOf?(site: Site<M>): Services
  contextOf(base: PageContext<M, Services>): Context
  readonly routes: readonly ContextRoute<Context>[]
}

interface Pages<M extends MachineBase> {
  readonly views: ServerViews<M>
  readonly plugin: ServerPlugin<M>
}

export function createPages<
  M extends MachineBase,
  Services extends PageServices,
  Context extends PageContext<M, Services>,
>(options: PagesOptions<M, Services, Context>): Pages<M> {
  const { version, assets, nav, find, login, table, services, contextOf, routes } = options
  const layout = createLayout({
    version,
    assetUrl: assets.url,
    nav,
    hasKeys: true,
    docs: DOCS_PATH,
    ...(find === undefined ? {} : { find }),
  })
  return {
    views: {
      ...table,
      renderLogin: (view) => renderLoginPage(layout, { ...view, ...login, heading: 'flasher' }),
      renderTyped: (form) => renderTypedPage(layout, form),
      renderOnward: (view) => renderOnward(layout, view),
      renderRefused: (view) => renderRefused(layout, view),
      renderError: (view, visit) =>
        renderErrorPage(layout, view, { ...visit, who: describeWho(callerOf(visit.event)) }),
      // Readers of the API document may not be logged in, so they see no count of failures.
      renderDocument: (view) => layout.page({ ...view, section: '', alarms: 0, keys: true }),
    },
    plugin: () => ({
      routes(site) {
        const own = options.servicesOf?.(site) ?? services
        const shared = { site, services: own, layout, nav, foot: options.foot }
        const open = (event: H3Event) => contextOf(createPageContext(shared, event))
        return [assetRoute(assets), themeRoute, ...routes.map((route) => route(open))]
      },
    }),
  }
}
