/** Tables with one handler for each member of a union, and the call of the matching one. */

/** `Tag`: the field by which the members differ. */
export type Cases<Tag extends string, Member extends Readonly<Record<Tag, string>>, Out> = {
  readonly [Name in Member[Tag]]: Act<Member & Readonly<Record<Tag, Name>>, Out>
}

/** Written as a method, so that an entry for one member is also one for a member of its kind. */
type Act<Member, Out> = { act(member: Member): Out }['act']

export function decideCase<Tag extends string, Member extends Readonly<Record<Tag, string>>, Out>(
  cases: Cases<Tag, Member, Out>,
  tag: Tag,
  member: Member,
): Out {
  const act: Act<Member, Out> = cases[member[tag]]
  return act(member)
}
