import type { JSX } from "preact";
import type { PageProps } from "../registry.ts";
import { useTitle } from "../../title.ts";
export default function RunPage({ params }: PageProps): JSX.Element {
  useTitle(params["id"]!);
  return <h1>{params["id"]}</h1>;
}
