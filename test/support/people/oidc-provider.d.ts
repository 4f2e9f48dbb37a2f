/** The part of oidc-provider that tests use; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Grant {
    addOIDCScope(scope: string): void
    addOIDCClaims(claims: readonly string[]): void
    save(): Promise<string>
  }

  interface Interaction {
    readonly uid: string
    readonly params: Readonly<Record<string, unknown>>
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    proxy: boolean
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { readonly mergeWithLastSubmission: boolean },
    ): Promise<void>
    readonly Grant: new (of: { readonly accountId: string; readonly clientId: string }) => Grant
    on(event: string, listener: (...given: readonly unknown[]) => void): void
  }
}
