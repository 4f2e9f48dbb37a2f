/** The pages that every web program shows beside its own: logging in, errors and documents. */
import type { H3Event } from 'h3'
import type { ErrorView } from '../answers/caller.ts'
import type { Content } from './html.ts'
import type { Theme } from './theme.ts'

export interface ProviderView {
  readonly name: string
  /** Where the login with it begins. */
  readonly href: string
  /** What went wrong with it, as a sentence; null: nothing that is known. */
  readonly error: string | null
}

export interface LoginView {
  readonly error: string | null
  /** A local path to go to afterwards, checked. */
  readonly next: string
  /** The name that was typed; empty: none. */
  readonly name: string
  /**
   * Whether people log in with a name; `optional`: without one it is the administrator. `nobody`: no
   * password opens a session.
   */
  readonly names: 'none' | 'optional' | 'required' | 'nobody'
  /** The provider with which people log in beside that; null: none. */
  readonly provider: ProviderView | null
}

interface DocumentView {
  readonly title: string
  readonly body: Content
  readonly theme: Theme
  readonly here: string
}

/** What an error page takes from its request, to look like the other pages of who is logged in. */
export interface ErrorVisit {
  readonly event: H3Event
  /** Whether the caller may open a page, for the links of the navigation. */
  mayOpen(path: string): boolean
  /** The number of unacknowledged failures; absent: it is not known. */
  readonly alarms?: number
}

export interface SiteViews {
  renderLogin(view: LoginView): string
  renderError(view: ErrorView, visit: ErrorVisit): string
  /** A page for everybody, in the frame of the others. */
  renderDocument(view: DocumentView): string
}
