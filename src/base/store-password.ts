// Store password: a store URL may contain a password, which must not be printed.

/** Works on text that is not a valid URL: removes everything from the first colon after the scheme to the last @. */
export function withoutPassword(address: string): string {
  return address.replace(/:(?!\/\/)[^]*@/u, ":…@");
}

/** A hint for an invalid URL whose password may be the cause. */
export function passwordHint(address: string): string {
  const isBroken = address.includes("@") && !URL.canParse(address);
  return isBroken ? " Escape special characters of a password: %2F for /, %40 for @, %23 for #." : "";
}
