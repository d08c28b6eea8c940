import { type ReactNode, useEffect, useRef } from "react";

type Given = { summary: ReactNode; name?: string; look?: string; children: ReactNode };

// A list of actions under a button. It closes by Escape, by a click elsewhere and on another page.
export function Menu({ summary, name, look, children }: Given) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const menu = box.current;
      if (!menu?.open || (event.target instanceof Node && event.type === "pointerdown" && menu.contains(event.target))) return;
      const key = (event as KeyboardEvent).key;
      if (key && key !== "Escape") return;
      menu.open = false;
      if (key) menu.querySelector("summary")?.focus();
    };
    const kinds = ["pointerdown", "keydown", "hashchange"];
    for (const kind of kinds) window.addEventListener(kind, close);
    return () => {
      for (const kind of kinds) window.removeEventListener(kind, close);
    };
  }, []);
  return (
    <details className="menu" ref={box}>
      <summary className={look} aria-label={name}>
        {summary}
      </summary>
      <div>{children}</div>
    </details>
  );
}
